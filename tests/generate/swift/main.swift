// SPDX-License-Identifier: Apache-2.0
import CoreML

func run(_ folder: URL) async throws {
    let model = try Sum_of_two(contentsOf: folder.appendingPathComponent("Sum of-two.mlmodelc"))
    let x = MLShapedArray<Float>(scalars: [1, 2], shape: [2])
    let y = MLShapedArray<Float>(scalars: [3, 5], shape: [2])
    let predict: () throws -> Sum_of_twoOutput = { try model.prediction(x: x, y: y) }
    let z = try predict().zShapedArray
    precondition(z.scalars == [4, 7] && z.shape == [2])
    let input = Sum_of_twoInput(x: x, y: y)
    let later = try await model.prediction(input: input)
    precondition(later.zShapedArray.scalars == [4, 7])
    let both = try model.predictions(inputs: [input, input])
    precondition(both.count == 2 && both[1].zShapedArray.scalars == [4, 7])

    let adder = try await Accumulator.load(contentsOf: folder.appendingPathComponent("Accumulator.mlmodelc"))
    let state = adder.makeState()
    let three = AccumulatorInput(x: MLShapedArray<Float16>(scalars: [1, 2, 3], shape: [3]))
    _ = try await adder.prediction(input: three, using: state)
    let sum = try await adder.prediction(input: three, using: state)
    precondition(sum.sumShapedArray.scalars == [2, 4, 6])

    let everything = Everything_2Output(
        features_: ["a": 1], by_number: [7: 2], return_: "r", label: 3, provider_: 4, values_: 6, list: ["b"],
        list_2: [5], matrix: MLMultiArray(MLShapedArray<Float16>(scalars: [1, 2], shape: [2])), drawn: CVPixelBuffer())
    precondition(everything.features_ == ["a": 1] && everything.by_number == [7: 2] && everything.values_ == 6 && everything.list_2 == [5])
}

try await run(URL(fileURLWithPath: CommandLine.arguments[1]))
print("predicted")
