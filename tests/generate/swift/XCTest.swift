// SPDX-License-Identifier: Apache-2.0
// The part of XCTest that recording tests use.
@_exported import Foundation

open class XCTestCase: NSObject {
    public func add(_ attachment: XCTAttachment) {}
}
public final class XCTAttachment {
    public enum Lifetime: Int { case keepAlways, deleteOnSuccess }
    public var name: String?
    public var lifetime = Lifetime.deleteOnSuccess
    public init(data: Data, uniformTypeIdentifier: String) {}
}
