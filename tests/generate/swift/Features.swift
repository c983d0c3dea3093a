// SPDX-License-Identifier: Apache-2.0
// Values of features between Core ML's names and Moka's C interface, and the parts of Core Video that programs use.
import Foundation
import MokaC

public typealias OSType = UInt32
public typealias CVReturn = Int32
public typealias CFDictionary = [String: [String: String]]
public final class CFAllocator {}
public struct CVPixelBufferLockFlags: OptionSet {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public static let readOnly = CVPixelBufferLockFlags(rawValue: 1)
}
public let kCVReturnSuccess: CVReturn = 0
public let kCVPixelBufferIOSurfacePropertiesKey = "IOSurfaceProperties"
public let kCVPixelFormatType_32ARGB: OSType = 32
public let kCVPixelFormatType_32BGRA: OSType = 0x42475241
public let kCVPixelFormatType_OneComponent8: OSType = 0x4c303038
public let kCVPixelFormatType_OneComponent16Half: OSType = 0x4c303068

/// Rows begin at multiples of 64 bytes.
public final class CVPixelBuffer {
    let width: Int, height: Int, format: OSType, row: Int
    let data: UnsafeMutableRawPointer
    var pixel: Int { format == kCVPixelFormatType_OneComponent8 ? 1 : format == kCVPixelFormatType_OneComponent16Half ? 2 : 4 }
    public convenience init() { self.init(1, 1, kCVPixelFormatType_32BGRA) }
    init(_ width: Int, _ height: Int, _ format: OSType) {
        (self.width, self.height, self.format) = (width, height, format)
        let pixel = format == kCVPixelFormatType_OneComponent8 ? 1 : format == kCVPixelFormatType_OneComponent16Half ? 2 : 4
        row = (width * pixel + 63) / 64 * 64
        data = .allocate(byteCount: row * height, alignment: 64)
        memset(data, 0, row * height)
    }
    deinit { data.deallocate() }
    var view: moka_image {
        let formats = [kCVPixelFormatType_OneComponent8: MOKA_GRAY8, kCVPixelFormatType_OneComponent16Half: MOKA_GRAY_FLOAT16]
        return moka_image(pixels: data, width: Int64(width), height: Int64(height), row_bytes: Int64(row), format: formats[format] ?? MOKA_BGRA8)
    }
    convenience init(_ image: moka_image) {
        let formats: [UInt32: OSType] = [MOKA_GRAY8.rawValue: kCVPixelFormatType_OneComponent8,
                                         MOKA_GRAY_FLOAT16.rawValue: kCVPixelFormatType_OneComponent16Half]
        self.init(Int(image.width), Int(image.height), formats[UInt32(image.format.rawValue)] ?? kCVPixelFormatType_32BGRA)
        let isRGBA = image.format == MOKA_RGBA8
        for y in 0..<height {
            let from = image.pixels + y * Int(image.row_bytes), to = data + y * row
            memcpy(to, from, width * pixel)
            guard isRGBA else { continue }
            for x in 0..<width {
                to.storeBytes(of: from.load(fromByteOffset: 4 * x + 2, as: UInt8.self), toByteOffset: 4 * x, as: UInt8.self)
                to.storeBytes(of: from.load(fromByteOffset: 4 * x, as: UInt8.self), toByteOffset: 4 * x + 2, as: UInt8.self)
            }
        }
    }
}

public func CVPixelBufferCreate(_ allocator: CFAllocator?, _ width: Int, _ height: Int, _ format: OSType, _ attributes: CFDictionary?,
                                _ out: UnsafeMutablePointer<CVPixelBuffer?>) -> CVReturn {
    out.pointee = CVPixelBuffer(width, height, format)
    return kCVReturnSuccess
}
@discardableResult public func CVPixelBufferLockBaseAddress(_ buffer: CVPixelBuffer, _ flags: CVPixelBufferLockFlags) -> CVReturn { kCVReturnSuccess }
@discardableResult public func CVPixelBufferUnlockBaseAddress(_ buffer: CVPixelBuffer, _ flags: CVPixelBufferLockFlags) -> CVReturn { kCVReturnSuccess }
public func CVPixelBufferGetBaseAddress(_ buffer: CVPixelBuffer) -> UnsafeMutableRawPointer? { buffer.data }
public func CVPixelBufferGetBytesPerRow(_ buffer: CVPixelBuffer) -> Int { buffer.row }
public func CVPixelBufferGetWidth(_ buffer: CVPixelBuffer) -> Int { buffer.width }
public func CVPixelBufferGetHeight(_ buffer: CVPixelBuffer) -> Int { buffer.height }
public func CVPixelBufferGetPixelFormatType(_ buffer: CVPixelBuffer) -> OSType { buffer.format }

func set(_ features: OpaquePointer?, _ name: String, _ value: MLFeatureValue) throws {
    switch value.value {
    case let number as Int64: try check(moka_features_set_int64(features, name, number))
    case let number as Double: try check(moka_features_set_double(features, name, number))
    case let text as String: try check(moka_features_set_string(features, name, text))
    case let image as CVPixelBuffer:
        var view = image.view
        try check(moka_features_set_image(features, name, &view))
    case let array as MLMultiArray:
        let shape = array.sizes.map { Int64($0) }, strides = array.steps.map { Int64($0) }
        try shape.withUnsafeBufferPointer { sizes in
            try strides.withUnsafeBufferPointer { steps in
                var view = moka_array(data: array.data.baseAddress, type: array.type, rank: sizes.count, shape: sizes.baseAddress,
                                      strides: steps.baseAddress)
                try check(moka_features_set_array(features, name, &view))
            }
        }
    case let sequence as MLSequence: try set(features, name, sequence)
    default: try set(features, name, value.dictionaryValue)
    }
}

func withTexts<R>(_ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) throws -> R) rethrows -> R {
    let copies = texts.map { strdup($0)! }
    defer { copies.forEach { free($0) } }
    return try copies.map { UnsafePointer($0) as UnsafePointer<CChar>? }.withUnsafeBufferPointer { try body($0.baseAddress!) }
}

private func set(_ features: OpaquePointer?, _ name: String, _ sequence: MLSequence) throws {
    if sequence.type == .int64 {
        try sequence.int64Values.map(\.int64Value).withUnsafeBufferPointer {
            var view = moka_sequence(count: $0.count, strings: nil, int64s: $0.baseAddress)
            try check(moka_features_set_sequence(features, name, &view))
        }
        return
    }
    try withTexts(sequence.stringValues) {
        var view = moka_sequence(count: sequence.stringValues.count, strings: $0, int64s: nil)
        try check(moka_features_set_sequence(features, name, &view))
    }
}

private func set(_ features: OpaquePointer?, _ name: String, _ dictionary: [AnyHashable: NSNumber]) throws {
    let entries = Array(dictionary), numbers = entries.map(\.value.doubleValue)
    try numbers.withUnsafeBufferPointer { numbers in
        if let keys = entries.map({ $0.key as? String }) as? [String] {
            try withTexts(keys) {
                var view = moka_dictionary(count: numbers.count, string_keys: $0, int64_keys: nil, values: numbers.baseAddress)
                try check(moka_features_set_dictionary(features, name, &view))
            }
        } else {
            try entries.map { ($0.key as? NSNumber)?.int64Value ?? 0 }.withUnsafeBufferPointer {
                var view = moka_dictionary(count: numbers.count, string_keys: nil, int64_keys: $0.baseAddress, values: numbers.baseAddress)
                try check(moka_features_set_dictionary(features, name, &view))
            }
        }
    }
}

func value(_ features: OpaquePointer?, _ name: UnsafePointer<CChar>) throws -> MLFeatureValue {
    var array = moka_array(), image = moka_image(), number = 0.0, integer: Int64 = 0, text: UnsafePointer<CChar>?
    if moka_features_get_array(features, name, &array) == MOKA_OK { return MLFeatureValue(multiArray: MLMultiArray(array)) }
    if moka_features_get_image(features, name, &image) == MOKA_OK { return MLFeatureValue(pixelBuffer: CVPixelBuffer(image)) }
    if moka_features_get_int64(features, name, &integer) == MOKA_OK { return MLFeatureValue(int64: integer) }
    if moka_features_get_double(features, name, &number) == MOKA_OK { return MLFeatureValue(double: number) }
    if moka_features_get_string(features, name, &text) == MOKA_OK { return MLFeatureValue(string: String(cString: text!)) }
    var sequence = moka_sequence(), dictionary = moka_dictionary()
    if moka_features_get_sequence(features, name, &sequence) == MOKA_OK {
        let all = 0..<sequence.count
        if sequence.strings != nil { return MLFeatureValue(sequence: MLSequence(strings: all.map { String(cString: sequence.strings[$0]!) })) }
        return MLFeatureValue(sequence: MLSequence(int64s: all.map { NSNumber(value: sequence.int64s[$0]) }))
    }
    try check(moka_features_get_dictionary(features, name, &dictionary))
    var entries: [AnyHashable: NSNumber] = [:]
    for i in 0..<dictionary.count {
        let key = dictionary.string_keys != nil ? AnyHashable(String(cString: dictionary.string_keys[i]!)) : AnyHashable(NSNumber(value: dictionary.int64_keys[i]))
        entries[key] = NSNumber(value: dictionary.values[i])
    }
    return try MLFeatureValue(dictionary: entries)
}
