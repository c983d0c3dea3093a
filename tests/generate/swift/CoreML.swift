// SPDX-License-Identifier: Apache-2.0
// The part of Core ML that generated code uses, on top of Moka's C interface.
@_exported import Foundation
import MokaC

public struct MokaError: Error { public let message: String }

func check(_ status: moka_status) throws {
    if status != MOKA_OK { throw MokaError(message: String(cString: moka_last_error())) }
}

public final class CGImage {}

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
        precondition(array.type == Scalar.type && (array.sizes.count < 2 || array.steps[array.sizes.count - 2] == array.sizes.last!))
        scalars = Array(array.data.bindMemory(to: Scalar.self).prefix(array.sizes.reduce(1, *)))
        shape = array.sizes
    }
}

public enum MLMultiArrayDataType: Int, Sendable {
    case float16 = 0x10010, float32 = 0x10020, double = 0x10040, int32 = 0x20020
    public static var float: MLMultiArrayDataType { .float32 }
    public static var float64: MLMultiArrayDataType { .double }
    var moka: moka_data_type {
        switch self {
        case .float16: return MOKA_FLOAT16
        case .float32: return MOKA_FLOAT32
        case .double: return MOKA_FLOAT64
        case .int32: return MOKA_INT32
        }
    }
    var size: Int { self == .float16 ? 2 : self == .double ? 8 : 4 }
}

/// Rows of the last dimension begin at multiples of 64 bytes, as Core ML stores what the Neural Engine computes.
public final class MLMultiArray {
    let type: moka_data_type
    let sizes: [Int], steps: [Int]
    let data: UnsafeMutableRawBufferPointer
    public let dataType: MLMultiArrayDataType
    public var shape: [NSNumber] { sizes.map { NSNumber(value: $0) } }
    public var strides: [NSNumber] { steps.map { NSNumber(value: $0) } }

    init(_ type: moka_data_type, _ sizes: [Int], padded: Bool) {
        self.type = type
        self.sizes = sizes
        dataType = [MLMultiArrayDataType.float16, .float32, .double, .int32].first { $0.moka == type }!
        let row = 64 / dataType.size
        var steps = [Int](repeating: 1, count: sizes.count)
        for i in (0..<max(0, sizes.count - 1)).reversed() {
            steps[i] = steps[i + 1] * sizes[i + 1]
            if padded && i == sizes.count - 2 { steps[i] = (steps[i] + row - 1) / row * row }
        }
        self.steps = steps
        data = .allocate(byteCount: max(1, sizes.isEmpty ? 1 : sizes[0] * steps[0]) * dataType.size, alignment: 64)
        data.initializeMemory(as: UInt8.self, repeating: 0)
    }
    public convenience init(shape: [NSNumber], dataType: MLMultiArrayDataType) throws {
        self.init(dataType.moka, shape.map(\.intValue), padded: true)
    }
    public convenience init<S>(_ array: MLShapedArray<S>) {
        self.init(S.type, array.shape, padded: false)
        array.scalars.withUnsafeBytes { data.copyMemory(from: $0) }
    }
    convenience init(_ array: moka_array) {
        let sizes = (0..<array.rank).map { Int(array.shape[$0]) }
        self.init(array.type, sizes, padded: true)
        let element = dataType.size, inner = sizes.last ?? 1
        for row in 0..<sizes.dropLast().reduce(1, *) {
            var left = row, at = 0
            for i in (0..<max(0, sizes.count - 1)).reversed() {
                at += left % sizes[i] * steps[i]
                left /= sizes[i]
            }
            memcpy(data.baseAddress! + at * element, array.data + row * inner * element, inner * element)
        }
    }
    deinit { data.deallocate() }

    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { try body(UnsafeRawBufferPointer(data)) }
    public func withUnsafeMutableBytes<R>(_ body: (UnsafeMutableRawBufferPointer, [Int]) throws -> R) rethrows -> R { try body(data, steps) }
}

public final class MLSequence {
    public let stringValues: [String]
    public let int64Values: [NSNumber]
    public let type: MLFeatureType
    public init(strings: [String]) { (stringValues, int64Values, type) = (strings, [], .string) }
    public init(int64s: [NSNumber]) { (stringValues, int64Values, type) = ([], int64s, .int64) }
}

public enum MLFeatureType: Int, Sendable { case invalid, int64, double, string, image, multiArray, dictionary, sequence, state }

public final class MLFeatureValue {
    public var type: MLFeatureType {
        switch value {
        case is Int64: return .int64
        case is Double: return .double
        case is String: return .string
        case is CVPixelBuffer: return .image
        case is MLMultiArray: return .multiArray
        case is MLSequence: return .sequence
        default: return .dictionary
        }
    }
    let value: Any
    public init(int64: Int64) { value = int64 }
    public init(double: Double) { value = double }
    public init(string: String) { value = string }
    public init(multiArray: MLMultiArray) { value = multiArray }
    public init(pixelBuffer: CVPixelBuffer) { value = pixelBuffer }
    public init(sequence: MLSequence) { value = sequence }
    public init(dictionary: [AnyHashable: NSNumber]) throws { value = dictionary }
    public init(cgImage: CGImage, pixelsWide: Int, pixelsHigh: Int, pixelFormatType: UInt32, options: [Int: Int]?) throws {
        value = CVPixelBuffer(pixelsWide, pixelsHigh, pixelFormatType)
    }
    public init(imageAt: URL, pixelsWide: Int, pixelsHigh: Int, pixelFormatType: UInt32, options: [Int: Int]?) throws {
        value = CVPixelBuffer(pixelsWide, pixelsHigh, pixelFormatType)
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

public enum MLComputeUnits: Int, Sendable { case cpuOnly = 0, cpuAndGPU = 1, all = 2, cpuAndNeuralEngine = 3 }

public final class MLModelConfiguration {
    public var computeUnits = MLComputeUnits.all
    public var functionName: String?
    public init() {}
    func with<R>(_ body: (UnsafePointer<moka_configuration>) throws -> R) rethrows -> R {
        var c = moka_default_configuration()
        c.compute_units = [.cpuOnly: MOKA_CPU_ONLY, .cpuAndGPU: MOKA_CPU_AND_GPU, .cpuAndNeuralEngine: MOKA_CPU_AND_NEURAL_ENGINE,
                           .all: MOKA_ALL][computeUnits]!
        return try (functionName ?? "").withCString { name in
            c.function_name = functionName == nil ? nil : name
            return try body(&c)
        }
    }
}
public final class MLPredictionOptions { public init() {} }

public final class MLState {
    let state: OpaquePointer?
    init(_ state: OpaquePointer?) { self.state = state }
    deinit { moka_state_free(state) }
}

public final class MLModel {
    var model: OpaquePointer?

    public init(contentsOf url: URL, configuration: MLModelConfiguration = MLModelConfiguration()) throws {
        try configuration.with { try check(moka_model_load(url.path, $0, &model)) }
    }
    deinit { moka_model_free(model) }

    /// Moka needs no compiled model, but the program under test must not find the source where it looks for one.
    public class func compileModel(at url: URL) async throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let copy = folder.appendingPathComponent(url.lastPathComponent)
        try FileManager.default.copyItem(at: url, to: copy)
        return copy
    }

    public class func load(contentsOf url: URL, configuration: MLModelConfiguration) async throws -> MLModel {
        try MLModel(contentsOf: url, configuration: configuration)
    }
    public class func load(contentsOf url: URL, configuration: MLModelConfiguration,
                           completionHandler handler: @escaping (Swift.Result<MLModel, Error>) -> Void) {
        handler(Swift.Result { try MLModel(contentsOf: url, configuration: configuration) })
    }

    func predict(_ input: any MLFeatureProvider, _ state: MLState?) throws -> any MLFeatureProvider {
        var inputs, outputs: OpaquePointer?
        try check(moka_features_new(&inputs))
        defer { moka_features_free(inputs) }
        try check(moka_features_new(&outputs))
        defer { moka_features_free(outputs) }
        for name in input.featureNames { try set(inputs, name, input.featureValue(for: name)!) }
        try withExtendedLifetime(input) { try check(moka_model_predict(model, inputs, outputs, state?.state)) }
        var values: [String: MLFeatureValue] = [:]
        for i in 0..<moka_features_count(outputs) {
            let name = moka_features_name(outputs, i)!
            values[String(cString: name)] = try value(outputs, name)
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
