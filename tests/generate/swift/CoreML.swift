// SPDX-License-Identifier: Apache-2.0
// The part of Core ML that generated code uses, on top of Moka's C interface.
@_exported import Foundation
import MokaC

public struct MokaError: Error { public let message: String }

func check(_ status: moka_status) throws {
    if status != MOKA_OK { throw MokaError(message: String(cString: moka_last_error())) }
}

public final class CVPixelBuffer { public init() {} }
public final class CGImage {}
public let kCVPixelFormatType_32ARGB: UInt32 = 32
public let kCVPixelFormatType_OneComponent8: UInt32 = 8
public let kCVPixelFormatType_OneComponent16Half: UInt32 = 16

public protocol MLShapedArrayScalar { static var type: moka_data_type { get } }
extension Float: MLShapedArrayScalar { public static var type: moka_data_type { MOKA_FLOAT32 } }
extension Float16: MLShapedArrayScalar { public static var type: moka_data_type { MOKA_FLOAT16 } }
extension Double: MLShapedArrayScalar { public static var type: moka_data_type { MOKA_FLOAT64 } }
extension Int32: MLShapedArrayScalar { public static var type: moka_data_type { MOKA_INT32 } }

public struct MLShapedArray<Scalar: MLShapedArrayScalar> {
    public let scalars: [Scalar]
    public let shape: [Int]
    public init(scalars: [Scalar], shape: [Int]) {
        self.scalars = scalars
        self.shape = shape
    }
    public init(_ array: MLMultiArray) {
        precondition(array.type == Scalar.type)
        scalars = Array(array.data.bindMemory(to: Scalar.self))
        shape = array.shape
    }
}

public final class MLMultiArray {
    let type: moka_data_type
    let shape: [Int]
    let data: UnsafeMutableRawBufferPointer
    public init<S>(_ array: MLShapedArray<S>) {
        type = S.type
        shape = array.shape
        data = .allocate(byteCount: array.scalars.count * MemoryLayout<S>.stride, alignment: 16)
        array.scalars.withUnsafeBytes { data.copyMemory(from: $0) }
    }
    init(_ array: moka_array) {
        type = array.type
        shape = (0..<array.rank).map { Int(array.shape[$0]) }
        let size = array.type == MOKA_FLOAT16 ? 2 : array.type == MOKA_FLOAT64 ? 8 : 4
        data = .allocate(byteCount: shape.reduce(1, *) * size, alignment: 16)
        data.copyMemory(from: UnsafeRawBufferPointer(start: array.data, count: data.count))
    }
    deinit { data.deallocate() }
}

public final class MLSequence {
    public let stringValues: [String]
    public let int64Values: [NSNumber]
    public init(strings: [String]) { (stringValues, int64Values) = (strings, []) }
    public init(int64s: [NSNumber]) { (stringValues, int64Values) = ([], int64s) }
}

public final class MLFeatureValue {
    let value: Any
    public init(int64: Int64) { value = int64 }
    public init(double: Double) { value = double }
    public init(string: String) { value = string }
    public init(multiArray: MLMultiArray) { value = multiArray }
    public init(pixelBuffer: CVPixelBuffer) { value = pixelBuffer }
    public init(sequence: MLSequence) { value = sequence }
    public init(dictionary: [AnyHashable: NSNumber]) throws { value = dictionary }
    public init(cgImage: CGImage, pixelsWide: Int, pixelsHigh: Int, pixelFormatType: UInt32, options: [Int: Int]?) throws {
        value = CVPixelBuffer()
    }
    public init(imageAt: URL, pixelsWide: Int, pixelsHigh: Int, pixelFormatType: UInt32, options: [Int: Int]?) throws {
        value = CVPixelBuffer()
    }
    public var int64Value: Int64 { value as! Int64 }
    public var doubleValue: Double { value as! Double }
    public var stringValue: String { value as! String }
    public var multiArrayValue: MLMultiArray? { value as? MLMultiArray }
    public var imageBufferValue: CVPixelBuffer? { value as? CVPixelBuffer }
    public var sequenceValue: MLSequence? { value as? MLSequence }
    public var dictionaryValue: [AnyHashable: NSNumber] { value as! [AnyHashable: NSNumber] }
}

public protocol MLFeatureProvider {
    var featureNames: Set<String> { get }
    func featureValue(for featureName: String) -> MLFeatureValue?
}

public final class MLDictionaryFeatureProvider: MLFeatureProvider {
    let values: [String: MLFeatureValue]
    public init(dictionary: [String: MLFeatureValue]) throws { values = dictionary }
    public var featureNames: Set<String> { Set(values.keys) }
    public func featureValue(for featureName: String) -> MLFeatureValue? { values[featureName] }
}

public protocol MLBatchProvider {
    var count: Int { get }
    func features(at index: Int) -> any MLFeatureProvider
}

public final class MLArrayBatchProvider: MLBatchProvider {
    let array: [any MLFeatureProvider]
    public init(array: [any MLFeatureProvider]) { self.array = array }
    public var count: Int { array.count }
    public func features(at index: Int) -> any MLFeatureProvider { array[index] }
}

public final class MLModelConfiguration { public init() {} }
public final class MLPredictionOptions { public init() {} }

public final class MLState {
    let state: OpaquePointer?
    init(_ state: OpaquePointer?) { self.state = state }
    deinit { moka_state_free(state) }
}

public final class MLModel {
    var model: OpaquePointer?

    public init(contentsOf url: URL, configuration: MLModelConfiguration = MLModelConfiguration()) throws {
        try check(moka_model_load(url.path, nil, &model))
    }
    deinit { moka_model_free(model) }

    public class func load(contentsOf url: URL, configuration: MLModelConfiguration) async throws -> MLModel {
        try MLModel(contentsOf: url)
    }
    public class func load(contentsOf url: URL, configuration: MLModelConfiguration,
                           completionHandler handler: @escaping (Swift.Result<MLModel, Error>) -> Void) {
        handler(Swift.Result { try MLModel(contentsOf: url) })
    }

    func predict(_ input: any MLFeatureProvider, _ state: MLState?) throws -> any MLFeatureProvider {
        var inputs, outputs: OpaquePointer?
        try check(moka_features_new(&inputs))
        defer { moka_features_free(inputs) }
        try check(moka_features_new(&outputs))
        defer { moka_features_free(outputs) }
        let arrays = input.featureNames.map { ($0, input.featureValue(for: $0)!.multiArrayValue!) }
        for (name, array) in arrays {
            let shape = array.shape.map { Int64($0) }
            try shape.withUnsafeBufferPointer { sizes in
                var view = moka_array(data: array.data.baseAddress, type: array.type, rank: sizes.count,
                                      shape: sizes.baseAddress, strides: nil)
                try check(moka_features_set_array(inputs, name, &view))
            }
        }
        try withExtendedLifetime(arrays) { try check(moka_model_predict(model, inputs, outputs, state?.state)) }
        var values: [String: MLFeatureValue] = [:]
        for i in 0..<moka_features_count(outputs) {
            let name = moka_features_name(outputs, i)!
            var array = moka_array(), number = 0.0
            if moka_features_get_double(outputs, name, &number) == MOKA_OK {
                values[String(cString: name)] = MLFeatureValue(double: number)
                continue
            }
            try check(moka_features_get_array(outputs, name, &array))
            values[String(cString: name)] = MLFeatureValue(multiArray: MLMultiArray(array))
        }
        return try MLDictionaryFeatureProvider(dictionary: values)
    }

    public func prediction(from input: any MLFeatureProvider, options: MLPredictionOptions) throws -> any MLFeatureProvider {
        try predict(input, nil)
    }
    public func prediction(from input: any MLFeatureProvider, options: MLPredictionOptions) async throws -> any MLFeatureProvider {
        try predict(input, nil)
    }
    public func prediction(from input: any MLFeatureProvider, using state: MLState, options: MLPredictionOptions) throws -> any MLFeatureProvider {
        try predict(input, state)
    }
    public func prediction(from input: any MLFeatureProvider, using state: MLState, options: MLPredictionOptions) async throws -> any MLFeatureProvider {
        try predict(input, state)
    }
    public func predictions(from batch: any MLBatchProvider, options: MLPredictionOptions) throws -> any MLBatchProvider {
        MLArrayBatchProvider(array: try (0..<batch.count).map { try predict(batch.features(at: $0), nil) })
    }
    public func makeState() -> MLState {
        var state: OpaquePointer?
        moka_state_new(model, &state)
        return MLState(state)
    }
}
