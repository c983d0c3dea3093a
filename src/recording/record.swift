// SPDX-License-Identifier: Apache-2.0
// Generated from the model; edits are lost.
//
// Moka @VERSION@ wrote this program, which records what Core ML does with a model: answers, placement, cost and times.
//
@USAGE@
//
// Send the recording to whoever wrote this program. The format is described in Moka's docs/recordings.md.

import CoreML
import Foundation
@IMPORTS@
#if canImport(CoreVideo)
import CoreVideo
#endif
#if canImport(Darwin)
import Darwin
#endif

private struct RecordError: Error, CustomStringConvertible {
    let description: String
}

private typealias Object = [String: Any]

/// What `moka record` fixed.
private enum Plan {
    static let moka = @MOKA@
    static let model = @MODEL@
    static let function = @FUNCTION@
    static let units: [String] = @UNITS@
    static let predictions = @PREDICTIONS@
    static let fullBytes = @FULL_BYTES@
    static let sampleElements = @SAMPLE_ELEMENTS@
    static let isStateful = @STATEFUL@
    /// The inputs of each prediction; empty: they are in a file of this name.
    static let inputs = @INPUTS@
    static let inputsFile = @INPUTS_FILE@
}

// MARK: Values

/// By their values, because older systems lack int8.
private var arrayTypes: [(name: String, value: Int, bytes: Int)] {
    [("float16", 0x10010, 2), ("float32", 0x10020, 4), ("float64", 0x10040, 8), ("int32", 0x20020, 4), ("int8", 0x20008, 1)]
}

private func member<T>(_ object: Object, _ key: String) throws -> T {
    guard let value = object[key] as? T else { throw RecordError(description: "the inputs lack '\(key)'") }
    return value
}

private func bytes(_ object: Object) throws -> Data {
    guard let data = Data(base64Encoded: try member(object, "data") as String) else {
        throw RecordError(description: "the inputs have data that is not base64")
    }
    return data
}

/// Calls `copy` with the offsets of rows of elements that lie side by side: in the storage and in row-major order.
private func eachRow(_ shape: [Int], _ strides: [Int], _ copy: (_ storage: Int, _ dense: Int, _ count: Int) -> Void) {
    guard !shape.contains(0) else { return }
    var inner = 1, outer = shape.count
    while outer > 0 && (shape[outer - 1] == 1 || strides[outer - 1] == inner) {
        inner *= shape[outer - 1]
        outer -= 1
    }
    var index = [Int](repeating: 0, count: outer)
    var storage = 0, dense = 0
    while true {
        copy(storage, dense, inner)
        dense += inner
        var axis = outer - 1
        while axis >= 0 {
            index[axis] += 1
            storage += strides[axis]
            if index[axis] < shape[axis] { break }
            storage -= strides[axis] * shape[axis]
            index[axis] = 0
            axis -= 1
        }
        if axis < 0 { return }
    }
}

private func array(_ object: Object) throws -> MLMultiArray {
    let name: String = try member(object, "type"), shape: [Int] = try member(object, "shape")
    guard let known = arrayTypes.first(where: { $0.name == name }), let type = MLMultiArrayDataType(rawValue: known.value) else {
        throw RecordError(description: "the inputs have an array of \(name)")
    }
    let array = try MLMultiArray(shape: shape.map { NSNumber(value: $0) }, dataType: type)
    let data = try bytes(object), element = known.bytes
    guard data.count == shape.reduce(1, *) * element else { throw RecordError(description: "the inputs have an array of another size") }
    data.withUnsafeBytes { (from: UnsafeRawBufferPointer) in
        array.withUnsafeMutableBytes { to, strides in
            eachRow(shape, strides) { storage, dense, count in
                let part = from[dense * element..<(dense + count) * element]
                UnsafeMutableRawBufferPointer(rebasing: to[(storage * element)...]).copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
            }
        }
    }
    return array
}

private var pixelFormats: [(name: String, format: OSType, bytes: Int)] {
    [("bgra8", kCVPixelFormatType_32BGRA, 4), ("gray8", kCVPixelFormatType_OneComponent8, 1),
     ("gray_float16", kCVPixelFormatType_OneComponent16Half, 2)]
}

private func image(_ object: Object) throws -> CVPixelBuffer {
    let width: Int = try member(object, "width"), height: Int = try member(object, "height")
    let name: String = try member(object, "format"), data = try bytes(object)
    guard let pixel = pixelFormats.first(where: { $0.name == name }), data.count == width * height * pixel.bytes else {
        throw RecordError(description: "the inputs have an image of another form")
    }
    var buffer: CVPixelBuffer?
    let options = [kCVPixelBufferIOSurfacePropertiesKey as String: [String: String]()] as CFDictionary
    guard CVPixelBufferCreate(nil, width, height, pixel.format, options, &buffer) == kCVReturnSuccess, let image = buffer else {
        throw RecordError(description: "an image of \(width) x \(height) pixels cannot be made")
    }
    CVPixelBufferLockBaseAddress(image, [])
    defer { CVPixelBufferUnlockBaseAddress(image, []) }
    guard let base = CVPixelBufferGetBaseAddress(image) else { throw RecordError(description: "an image has no pixels") }
    let row = CVPixelBufferGetBytesPerRow(image)
    data.withUnsafeBytes { (from: UnsafeRawBufferPointer) in
        for y in 0..<height {
            let part = UnsafeRawBufferPointer(rebasing: from[y * width * pixel.bytes..<(y + 1) * width * pixel.bytes])
            UnsafeMutableRawBufferPointer(start: base + y * row, count: row).copyMemory(from: part)
        }
    }
    return image
}

private func number(_ value: Any?) throws -> Double {
    if let number = value as? NSNumber { return number.doubleValue }
    switch value as? String {
    case "nan": return .nan
    case "inf": return .infinity
    case "-inf": return -.infinity
    default: throw RecordError(description: "the inputs lack a number")
    }
}

private func number(_ value: Double) -> Any {
    if value.isFinite { return value }
    return value.isNaN ? "nan" : value > 0 ? "inf" : "-inf"
}

private func feature(_ object: Object) throws -> MLFeatureValue {
    switch try member(object, "type") as String {
    case "int64": return MLFeatureValue(int64: Int64(try member(object, "value") as Int))
    case "double": return MLFeatureValue(double: try number(object["value"]))
    case "string": return MLFeatureValue(string: try member(object, "value"))
    case "image": return MLFeatureValue(pixelBuffer: try image(object))
    case "strings": return MLFeatureValue(sequence: MLSequence(strings: try member(object, "value")))
    case "int64s":
        return MLFeatureValue(sequence: MLSequence(int64s: (try member(object, "value") as [Int]).map { NSNumber(value: Int64($0)) }))
    case "dictionary":
        let numbers = try (try member(object, "values") as [Any]).map { NSNumber(value: try number($0)) }
        let keys: [Any] = try member(object, "keys")
        let hashable = keys.map { ($0 as? String).map(AnyHashable.init) ?? AnyHashable(NSNumber(value: ($0 as? Int) ?? 0)) }
        return try MLFeatureValue(dictionary: [AnyHashable: NSNumber](zip(hashable, numbers)) { first, _ in first })
    default: return MLFeatureValue(multiArray: try array(object))
    }
}

// MARK: Answers

/// SHA-256, which is not in Foundation.
private func sha256(_ data: [UInt8]) -> String {
    func root(_ x: Double, _ power: Double) -> UInt32 {
        let fraction = pow(x, power) - pow(x, power).rounded(.down)
        return UInt32(truncatingIfNeeded: UInt64(fraction * 4_294_967_296))
    }
    let primes = (2..<312).filter { n in !(2..<n).contains { n % $0 == 0 } }
    var state = primes.prefix(8).map { root(Double($0), 1.0 / 2) }
    let constants = primes.prefix(64).map { root(Double($0), 1.0 / 3) }
    func turned(_ x: UInt32, _ n: UInt32) -> UInt32 { x >> n | x << (32 - n) }
    var message = data + [0x80]
    message += [UInt8](repeating: 0, count: (119 - data.count % 64) % 64)
    let bits = UInt64(data.count) * 8
    message += (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * $0)) }
    var w = [UInt32](repeating: 0, count: 64)
    for start in stride(from: 0, to: message.count, by: 64) {
        for i in 0..<16 {
            let at = start + 4 * i
            w[i] = UInt32(message[at]) << 24 | UInt32(message[at + 1]) << 16 | UInt32(message[at + 2]) << 8 | UInt32(message[at + 3])
        }
        for i in 16..<64 {
            let a = turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3
            let b = turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10
            w[i] = w[i - 16] &+ a &+ w[i - 7] &+ b
        }
        var s = state
        for i in 0..<64 {
            let a = turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)
            let first = s[7] &+ a &+ (s[4] & s[5] ^ ~s[4] & s[6]) &+ constants[i] &+ w[i]
            let b = turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)
            let second = b &+ (s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2])
            s = [first &+ second, s[0], s[1], s[2], s[3] &+ first, s[4], s[5], s[6]]
        }
        for i in 0..<8 { state[i] = state[i] &+ s[i] }
    }
    return state.map { word in
        let digits = String(word, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }.joined()
}

private func elements(_ data: [UInt8], _ type: String) -> [Double] {
    data.withUnsafeBytes { raw in
        switch type {
        case "float16": return (0..<raw.count / 2).map { half(raw.loadUnaligned(fromByteOffset: 2 * $0, as: UInt16.self)) }
        case "float32": return (0..<raw.count / 4).map { Double(raw.loadUnaligned(fromByteOffset: 4 * $0, as: Float.self)) }
        case "float64": return (0..<raw.count / 8).map { raw.loadUnaligned(fromByteOffset: 8 * $0, as: Double.self) }
        case "int8": return raw.map { Double(Int8(bitPattern: $0)) }
        default: return (0..<raw.count / 4).map { Double(raw.loadUnaligned(fromByteOffset: 4 * $0, as: Int32.self)) }
        }
    }
}

/// Float16 is missing on Macs with Intel processors.
private func half(_ bits: UInt16) -> Double {
    let sign: Double = bits & 0x8000 == 0 ? 1 : -1, exponent = Int(bits >> 10 & 31), fraction = Double(bits & 1023)
    if exponent == 31 { return fraction == 0 ? sign * .infinity : .nan }
    return exponent == 0 ? sign * fraction * pow(2, -24) : sign * (1 + fraction / 1024) * pow(2, Double(exponent - 15))
}

/// All elements of a small array; a digest, a sample and statistics of a large one.
private func recorded(_ array: MLMultiArray) throws -> Object {
    guard let (name, _, element) = arrayTypes.first(where: { $0.value == array.dataType.rawValue }) else {
        throw RecordError(description: "an array of an unknown type: \(array.dataType.rawValue)")
    }
    let shape = array.shape.map(\.intValue), strides = array.strides.map(\.intValue), count = shape.reduce(1, *)
    var dense = [UInt8](repeating: 0, count: count * element)
    dense.withUnsafeMutableBytes { to in
        array.withUnsafeBytes { from in
            eachRow(shape, strides) { storage, at, count in
                let part = UnsafeRawBufferPointer(rebasing: from[storage * element..<(storage + count) * element])
                UnsafeMutableRawBufferPointer(rebasing: to[(at * element)...]).copyMemory(from: part)
            }
        }
    }
    if dense.count <= Plan.fullBytes { return ["type": name, "shape": shape, "data": Data(dense).base64EncodedString()] }
    let step = (count + Plan.sampleElements - 1) / Plan.sampleElements
    var sample = [UInt8]()
    for at in stride(from: 0, to: count, by: step) { sample += dense[at * element..<(at + 1) * element] }
    let numbers = elements(dense, name), finite = numbers.filter(\.isFinite)
    return [
        "type": name, "shape": shape, "sha256": sha256(dense),
        "sample": ["step": step, "data": Data(sample).base64EncodedString()] as Object,
        "statistics": [
            "least": finite.min() ?? 0, "most": finite.max() ?? 0,
            "mean": finite.isEmpty ? 0 : finite.reduce(0, +) / Double(finite.count),
            "nan": numbers.filter(\.isNaN).count, "infinite": numbers.filter(\.isInfinite).count,
        ] as Object,
    ]
}

private func recorded(_ image: CVPixelBuffer) throws -> Object {
    let format = CVPixelBufferGetPixelFormatType(image)
    guard let pixel = pixelFormats.first(where: { $0.format == format }) else {
        throw RecordError(description: "an image of an unknown format: \(format)")
    }
    CVPixelBufferLockBaseAddress(image, .readOnly)
    defer { CVPixelBufferUnlockBaseAddress(image, .readOnly) }
    let width = CVPixelBufferGetWidth(image), height = CVPixelBufferGetHeight(image), row = CVPixelBufferGetBytesPerRow(image)
    guard let base = CVPixelBufferGetBaseAddress(image) else { throw RecordError(description: "an image has no pixels") }
    var data = Data()
    for y in 0..<height { data.append(Data(bytes: base + y * row, count: width * pixel.bytes)) }
    return ["type": "image", "format": pixel.name, "width": width, "height": height, "data": data.base64EncodedString()]
}

private func recorded(_ value: MLFeatureValue) throws -> Object {
    switch value.type {
    case .int64: return ["type": "int64", "value": value.int64Value]
    case .double: return ["type": "double", "value": number(value.doubleValue)]
    case .string: return ["type": "string", "value": value.stringValue]
    case .multiArray:
        guard let array = value.multiArrayValue else { break }
        return try recorded(array)
    case .image:
        guard let image = value.imageBufferValue else { break }
        return try recorded(image)
    case .dictionary:
        let entries = value.dictionaryValue.map { ($0.key, $0.value.doubleValue) }
        let keys: [Any] = entries.map { ($0.0 as? String) ?? (($0.0 as? NSNumber)?.int64Value ?? 0) as Any }
        return ["type": "dictionary", "keys": keys, "values": entries.map { number($0.1) }]
    case .sequence:
        guard let sequence = value.sequenceValue else { break }
        return sequence.type == .int64 ? ["type": "int64s", "value": sequence.int64Values.map(\.int64Value)]
            : ["type": "strings", "value": sequence.stringValues]
    default: break
    }
    throw RecordError(description: "a value of a kind that this program does not know")
}

private func recorded(_ provider: any MLFeatureProvider) throws -> Object {
    var out = Object()
    for name in provider.featureNames {
        if let value = provider.featureValue(for: name) { out[name] = try recorded(value) }
    }
    return out
}

// MARK: Placement

@available(macOS 14.4, iOS 17.4, tvOS 17.4, watchOS 10.4, *)
private func name(of device: MLComputeDevice) -> String {
    switch device {
    case .cpu: return "cpu"
    case .gpu: return "gpu"
    case .neuralEngine: return "neuralEngine"
    @unknown default: return "unknown"
    }
}

@available(macOS 14.4, iOS 17.4, tvOS 17.4, watchOS 10.4, *)
private func add(_ usage: MLComputePlan.DeviceUsage?, to object: inout Object) {
    guard let usage = usage else { return }
    object["supported"] = usage.supported.map(name(of:)).sorted()
    object["preferred"] = name(of: usage.preferred)
}

@available(macOS 14.4, iOS 17.4, tvOS 17.4, watchOS 10.4, *)
private func operations(_ block: MLModelStructure.Program.Block, _ plan: MLComputePlan, _ place: Object, _ depth: Int) -> [Object] {
    var out = [Object]()
    for operation in block.operations where operation.operatorName != "const" {
        var one = place
        one["type"] = operation.operatorName
        one["outputs"] = operation.outputs.map(\.name)
        if depth > 0 { one["depth"] = depth }
        add(plan.deviceUsage(for: operation), to: &one)
        if let cost = plan.estimatedCost(of: operation) { one["cost"] = cost.weight }
        out.append(one)
        for inner in operation.blocks { out += operations(inner, plan, place, depth + 1) }
    }
    return out
}

@available(macOS 14.4, iOS 17.4, tvOS 17.4, watchOS 10.4, *)
private func operations(_ structure: MLModelStructure, _ plan: MLComputePlan, _ place: Object) -> [Object] {
    switch structure {
    case .program(let program):
        return program.functions.sorted { $0.key < $1.key }.flatMap { name, function -> [Object] in
            var inside = place
            if program.functions.count > 1 { inside["function"] = name }
            return operations(function.block, plan, inside, 0)
        }
    case .neuralNetwork(let network):
        return network.layers.map { layer in
            var one = place
            one["name"] = layer.name
            one["type"] = layer.type
            one["outputs"] = layer.outputNames
            add(plan.deviceUsage(for: layer), to: &one)
            return one
        }
    case .pipeline(let pipeline):
        return zip(pipeline.subModelNames, pipeline.subModels).flatMap { name, model -> [Object] in
            var inside = place
            inside["model"] = ((place["model"] as? String).map { $0 + "/" } ?? "") + name
            return operations(model, plan, inside)
        }
    default: return []
    }
}

// MARK: Recording

private func units(_ name: String) throws -> MLComputeUnits {
    switch name {
    case "all": return .all
    case "cpuOnly": return .cpuOnly
    case "cpuAndGPU": return .cpuAndGPU
    case "cpuAndNeuralEngine": return .cpuAndNeuralEngine
    default: throw RecordError(description: "unknown compute units: \(name)")
    }
}

private func configuration(_ name: String) throws -> MLModelConfiguration {
    let configuration = MLModelConfiguration()
    configuration.computeUnits = try units(name)
@FUNCTION_LINES@    return configuration
}

private func now() -> Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }

/// Each prediction of a model with states begins with new ones.
private func predict(_ model: MLModel, _ inputs: any MLFeatureProvider) throws -> (any MLFeatureProvider, Double) {
    let options = MLPredictionOptions()
    if Plan.isStateful {
        guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else {
            throw RecordError(description: "this system has no states of models")
        }
        let state = model.makeState(), start = now()
        return (try model.prediction(from: inputs, using: state, options: options), now() - start)
    }
    let start = now()
    return (try model.prediction(from: inputs, options: options), now() - start)
}

private func system(_ name: String) -> String {
    var size = 0
    guard sysctlbyname(name, nil, &size, nil, 0) == 0, size > 0 else { return "" }
    var text = [UInt8](repeating: 0, count: size)
    guard sysctlbyname(name, &text, &size, nil, 0) == 0 else { return "" }
    return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
}

private func device() -> Object {
    let process = ProcessInfo.processInfo
    #if os(macOS)
    let kind = "macOS"
    #elseif os(iOS)
    let kind = "iOS"
    #elseif os(tvOS)
    let kind = "tvOS"
    #elseif os(watchOS)
    let kind = "watchOS"
    #elseif os(visionOS)
    let kind = "visionOS"
    #else
    let kind = "other"
    #endif
    #if targetEnvironment(simulator)
    let isSimulator = true
    #else
    let isSimulator = false
    #endif
    var chip = system("machdep.cpu.brand_string"), machine = system("hw.machine")
    if kind == "macOS" { machine = system("hw.model") }
    if chip.isEmpty { chip = machine }
    let states: [ProcessInfo.ThermalState: String] = [.nominal: "nominal", .fair: "fair", .serious: "serious", .critical: "critical"]
    return [
        "system": kind, "version": process.operatingSystemVersionString, "machine": machine, "chip": chip,
        "processors": process.processorCount, "memoryBytes": process.physicalMemory,
        "thermalState": states[process.thermalState] ?? "unknown", "lowPowerMode": process.isLowPowerModeEnabled,
        "simulated": isSimulator,
    ]
}

private final class Recorder {
    private let file: URL
    private var root: Object
    private var settings = [Object]()

    init(file: URL) throws {
        self.file = file
        if let old = try? Data(contentsOf: file), !old.isEmpty, old.range(of: Data("\"moka-recording\"".utf8)) == nil {
            throw RecordError(description: "\(file.path) is not a recording and is not replaced")
        }
        let date = ISO8601DateFormatter().string(from: Date())
        root = ["format": "moka-recording", "version": 1, "moka": Plan.moka, "date": date, "device": device()]
    }

    /// After each step, so that a step that ends the program leaves what came before.
    private func write() throws {
        root["settings"] = settings
        let data = try JSONSerialization.data(withJSONObject: root, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        try data.write(to: file, options: .atomic)
    }

    func record(_ source: URL, _ cases: [Object]) async throws {
        root["model"] = ["name": Plan.model, "function": Plan.function]
        root["inputs"] = cases
        let inputs = try cases.map { one in
            try MLDictionaryFeatureProvider(dictionary: try one.mapValues { value in
                guard let object = value as? Object else { throw RecordError(description: "the inputs lack a value") }
                return try feature(object)
            })
        }
        var compiled = source
        if source.pathExtension != "mlmodelc" {
            let start = now()
            compiled = try await MLModel.compileModel(at: source)
            root["compileSeconds"] = now() - start
        }
        for name in Plan.units {
            FileHandle.standardError.write(Data("\(name)\n".utf8))
            settings.append(["computeUnits": name, "error": "the program ended while this was measured"])
            try write()
            var setting: Object = ["computeUnits": name]
            do {
                try await measure(compiled, name, inputs, &setting)
            } catch {
                setting["error"] = "\(error)"
            }
            setting["plan"] = ["error": "the program ended while the plan was made"]
            settings[settings.count - 1] = setting
            try write()
            setting["plan"] = await plan(compiled, name)
            settings[settings.count - 1] = setting
            try write()
        }
    }

    private func measure(_ compiled: URL, _ name: String, _ inputs: [any MLFeatureProvider], _ setting: inout Object) async throws {
        var loads = [Double](), model: MLModel?
        for _ in 0..<2 {
            model = nil
            let start = now()
            model = try await MLModel.load(contentsOf: compiled, configuration: try configuration(name))
            loads.append(now() - start)
            setting["loadSeconds"] = loads
        }
        guard let model = model else { return }
        var outputs = [Object](), times = [Double]()
        for (index, one) in inputs.enumerated() {
            let (answer, seconds) = try predict(model, one)
            if index == 0 { setting["firstSeconds"] = seconds }
            outputs.append(try recorded(answer))
        }
        setting["outputs"] = outputs
        for i in 0..<Plan.predictions { times.append(try predict(model, inputs[i % inputs.count]).1) }
        setting["predictionSeconds"] = times
    }

    private func plan(_ compiled: URL, _ name: String) async -> Object {
        guard #available(macOS 14.4, iOS 17.4, tvOS 17.4, watchOS 10.4, *) else { return ["error": "this system has no MLComputePlan"] }
        do {
            let plan = try await MLComputePlan.load(contentsOf: compiled, configuration: try configuration(name))
            return ["operations": operations(plan.modelStructure, plan, [:])]
        } catch {
            return ["error": "\(error)"]
        }
    }
}

private func cases(_ inputsFile: URL) throws -> [Object] {
    let data = Plan.inputs.isEmpty ? try Data(contentsOf: inputsFile) : Data(Plan.inputs.utf8)
    guard let cases = try JSONSerialization.jsonObject(with: data) as? [Object], !cases.isEmpty else {
        throw RecordError(description: "the inputs are not a list")
    }
    return cases
}

@MAIN@
