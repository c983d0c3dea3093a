// SPDX-License-Identifier: Apache-2.0
#include "compiler/generate/swift/fields.h"

#include <cctype>

#include "base/error.h"
#include "compiler/metadata.h"

namespace moka::compiler::swift {

using import::FeatureKind;

std::string available(int version) {
  const auto s = systems_of(version);
  return cat("@available(macOS ", s.macos, ", iOS ", s.ios, ", tvOS ", s.tvos, ", watchOS ", s.watchos, ", visionOS ",
             s.visionos, ", *)");
}

std::string element(const Field& f) {
  switch (f.feature.array.dtype) {
    case ir::DType::fp16: return "Float16";
    case ir::DType::fp64: return "Double";
    case ir::DType::int32: return "Int32";
    case ir::DType::int8: return "Int8";
    default: return "Float";
  }
}

std::string bare_type(const Field& f, bool shaped) {
  switch (f.feature.kind) {
    case FeatureKind::int64: return "Int64";
    case FeatureKind::float64: return "Double";
    case FeatureKind::string: return "String";
    case FeatureKind::image: return "CVPixelBuffer";
    case FeatureKind::dictionary: return f.feature.string_keys ? "[String : Double]" : "[Int64 : Double]";
    case FeatureKind::sequence: return f.feature.string_keys ? "[String]" : "[Int64]";
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return shaped ? cat("MLShapedArray<", element(f), ">") : "MLMultiArray";
}

std::string type_of(const Field& f, bool shaped) { return bare_type(f, shaped) + (f.feature.optional ? "?" : ""); }

std::string feature_value(const Field& f, const std::string& value) {
  const bool strings = f.feature.string_keys;
  switch (f.feature.kind) {
    case FeatureKind::int64: return cat("MLFeatureValue(int64: ", value, ")");
    case FeatureKind::float64: return cat("MLFeatureValue(double: ", value, ")");
    case FeatureKind::string: return cat("MLFeatureValue(string: ", value, ")");
    case FeatureKind::image: return cat("MLFeatureValue(pixelBuffer: ", value, ")");
    case FeatureKind::dictionary:
      return cat("try! MLFeatureValue(dictionary: Dictionary(uniqueKeysWithValues: ", value,
                 ".map { (AnyHashable($0.key), NSNumber(value: $0.value)) }))");
    case FeatureKind::sequence:
      return strings ? cat("MLFeatureValue(sequence: MLSequence(strings: ", value, "))")
                     : cat("MLFeatureValue(sequence: MLSequence(int64s: ", value, ".map { NSNumber(value: $0) }))");
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return cat("MLFeatureValue(multiArray: ", value, ")");
}

std::string value_of(const Field& f) {
  const std::string value = cat("provider.featureValue(for: ", literal(f.feature.name, true), ")!.");
  const bool strings = f.feature.string_keys;
  switch (f.feature.kind) {
    case FeatureKind::int64: return value + "int64Value";
    case FeatureKind::float64: return value + "doubleValue";
    case FeatureKind::string: return value + "stringValue";
    case FeatureKind::image: return value + "imageBufferValue!";
    case FeatureKind::dictionary:
      return cat("Dictionary(uniqueKeysWithValues: ", value, "dictionaryValue.map { (",
                 strings ? "$0.key as! String" : "($0.key as! NSNumber).int64Value", ", $0.value.doubleValue) })");
    case FeatureKind::sequence:
      return value + (strings ? "sequenceValue!.stringValues" : "sequenceValue!.int64Values.map { $0.int64Value }");
    case FeatureKind::multi_array:
    case FeatureKind::state: break;
  }
  return value + "multiArrayValue!";
}

bool is_array(const Field& f) { return f.feature.kind == FeatureKind::multi_array; }

}  // namespace moka::compiler::swift
