// swift-tools-version: 5.9
// SPDX-License-Identifier: Apache-2.0
// A program whose package contains a compiled model: ./prepare && swift run plane 1 2
import PackageDescription

let package = Package(
    name: "plane",
    platforms: [.macOS(.v12)],
    targets: [.executableTarget(name: "plane", resources: [.copy("Resources/Plane.mlmodelc")])]
)
