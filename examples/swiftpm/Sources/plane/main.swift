// SPDX-License-Identifier: Apache-2.0
import CoreML

// The height of a plane over two numbers: 2 a + 3 b + 1.
let numbers = CommandLine.arguments.dropFirst().compactMap(Double.init)
guard numbers.count == 2, let url = Bundle.module.url(forResource: "Plane", withExtension: "mlmodelc") else {
    fatalError("usage: plane A B")
}
let plane = try Plane(contentsOf: url)
print(try plane.prediction(x: MLShapedArray(scalars: numbers, shape: [2])).y)
