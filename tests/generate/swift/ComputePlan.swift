// SPDX-License-Identifier: Apache-2.0
// Core ML's compute plan by its public names, with what Moka says of each operation and its preview of the Neural Engine, and
// the facts of a device.
import Foundation
import MokaC

public final class MLCPUComputeDevice {}
public final class MLGPUComputeDevice {}
public final class MLNeuralEngineComputeDevice {}
@frozen public enum MLComputeDevice {
    case cpu(MLCPUComputeDevice), gpu(MLGPUComputeDevice), neuralEngine(MLNeuralEngineComputeDevice)
    init?(_ unit: String) {
        switch unit {
        case "cpu": self = .cpu(MLCPUComputeDevice())
        case "gpu": self = .gpu(MLGPUComputeDevice())
        case "neuralEngine": self = .neuralEngine(MLNeuralEngineComputeDevice())
        default: return nil
        }
    }
}

public enum MLModelStructure {
    case unsupported
    case program(Program), neuralNetwork(NeuralNetwork), pipeline(Pipeline)
    public struct Program {
        public struct NamedValueType { public let name: String }
        public struct Operation {
            public let operatorName: String, outputs: [NamedValueType], blocks: [Block]
            let usage: MLComputePlan.DeviceUsage?, cost: Double
        }
        public struct Block { public let operations: [Operation] }
        public struct Function { public let block: Block }
        public let functions: [String: Function]
    }
    public struct NeuralNetwork {
        public struct Layer {
            public let name: String, type: String, inputNames: [String], outputNames: [String]
            let usage: MLComputePlan.DeviceUsage?
        }
        public let layers: [Layer]
    }
    public struct Pipeline {
        public let subModelNames: [String], subModels: [MLModelStructure]
    }
}

public final class MLComputePlan {
    public struct DeviceUsage { public let supported: [MLComputeDevice], preferred: MLComputeDevice }
    public struct Cost { public let weight: Double }
    public let modelStructure: MLModelStructure

    init(_ url: URL, _ configuration: MLModelConfiguration) throws {
        var model: OpaquePointer?, plan: OpaquePointer?
        try configuration.with {
            var plain = $0.pointee
            (plain.optimize, plain.reuse_buffers, plain.exact_precision) = (0, 0, 1)
            try check(moka_model_load(url.path, &plain, &model))
        }
        defer { moka_model_free(model) }
        try check(moka_model_compute_plan(model, nil, 0, &plan))
        defer { moka_compute_plan_free(plan) }
        var operations = [MLModelStructure.Program.Operation]()
        for i in 0..<moka_compute_plan_operation_count(plan) {
            var o = moka_planned_operation()
            o.struct_size = MemoryLayout<moka_planned_operation>.size
            try check(moka_compute_plan_operation(plan, i, &o))
            if o.kernel[0] == 0 { continue }
            var units = [String](), preferred = "cpu"
            for j in 0..<o.bid_count {
                var bid = moka_unit_bid()
                bid.struct_size = MemoryLayout<moka_unit_bid>.size
                try check(moka_compute_plan_bid(plan, i, j, &bid))
                let unit = String(cString: bid.unit)
                if bid.refusal[0] == 0 && !units.contains(unit) { units.append(unit) }
                if strcmp(bid.device, o.device) == 0 { preferred = unit }
            }
            if !units.contains("cpu") { units.append("cpu") }
            operations.append(.init(operatorName: "ios18." + String(cString: o.type), outputs: [.init(name: String(cString: o.name))], blocks: [],
                                    usage: DeviceUsage(supported: units.compactMap { MLComputeDevice($0) }, preferred: MLComputeDevice(preferred)!),
                                    cost: o.cost))
        }
        modelStructure = .program(.init(functions: ["main": .init(block: .init(operations: operations))]))
    }
    public static func load(contentsOf url: URL, configuration: MLModelConfiguration) async throws -> MLComputePlan {
        try MLComputePlan(url, configuration)
    }
    public func deviceUsage(for operation: MLModelStructure.Program.Operation) -> DeviceUsage? { operation.usage }
    public func deviceUsage(for layer: MLModelStructure.NeuralNetwork.Layer) -> DeviceUsage? { layer.usage }
    public func estimatedCost(of operation: MLModelStructure.Program.Operation) -> Cost? { Cost(weight: operation.cost) }
}

extension ProcessInfo {
    public enum ThermalState: Int { case nominal, fair, serious, critical }
    public var thermalState: ThermalState { .nominal }
    public var isLowPowerModeEnabled: Bool { false }
}

public func sysctlbyname(_ name: String, _ out: UnsafeMutableRawPointer?, _ size: UnsafeMutablePointer<Int>?, _ new: UnsafeMutableRawPointer?,
                         _ newSize: Int) -> Int32 {
    let facts = ["machdep.cpu.brand_string": "Moka's preview", "hw.model": "Linux1,1", "hw.machine": "Linux1,1"]
    guard let text = facts[name], let size = size else { return -1 }
    if let out = out { _ = text.withCString { memcpy(out, $0, min(size.pointee, strlen($0) + 1)) } }
    size.pointee = text.utf8.count + 1
    return 0
}
