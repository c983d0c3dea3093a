// SPDX-License-Identifier: Apache-2.0
#include "alterations_util.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace moka::comparison_test {
namespace {

bool is_number(const Message::Field& f) { return f.type == "number" || f.type == "integer" || f.type == "boolean"; }

void collect(const std::string& operation, const std::string& path, const Message& message, std::vector<Leaf>& to) {
  const auto present = message.names();
  for (const Message::Field& f : message.fields()) {
    if (std::find(present.begin(), present.end(), f.name) == present.end()) continue;
    if (f.is_message) {
      for (const Message& inner : message.all(f.name)) collect(operation, path + "." + f.name, inner, to);
    } else if (is_number(f)) {
      // Only average pooling reads it, and a changed size of the file changes how other weights are imported.
      if (f.name == "avgPoolExcludePadding" &&
          message.values("type") != std::vector<Message::Scalar>{std::string("AVERAGE")})
        continue;
      const std::string full = path + "." + f.name;
      to.push_back({operation, full, message, f.name, {}, 0, f.repeated && message.values(f.name).size() > 16});
    }
  }
}

/// Numbers of a constant: immediate, or in a file.
void collect_value(const std::string& operation, const Message& value, std::vector<Leaf>& to) {
  if (value.has("blobFileValue")) {
    const Message blob = value.at("blobFileValue");
    std::string name = std::get<std::string>(blob.values("fileName").at(0));
    const std::string root = "@model_path/";
    if (name.starts_with(root)) name.erase(0, root.size());
    const auto offsets = blob.values("offset");
    const auto* offset = offsets.empty() ? nullptr : std::get_if<uint64_t>(&offsets[0]);
    to.push_back({operation, "blobFileValue", value, {}, name, offset != nullptr ? *offset : 0, true});
  } else if (value.has("immediateValue")) {
    collect(operation, "immediateValue", value.at("immediateValue"), to);
  }
}

void collect_block(const Message& block, std::vector<Leaf>& to) {
  for (const Message& op : block.all("operations")) {
    std::string name;
    for (const Message& attribute : op.all("attributes"))
      if (std::get<std::string>(attribute.values("key").at(0)) == "name")
        name = std::get<std::string>(
            attribute.at("value").at("immediateValue").at("tensor").at("strings").values("values").at(0));
    for (const Message& attribute : op.all("attributes"))
      if (std::get<std::string>(attribute.values("key").at(0)) != "name")
        collect_value(name, attribute.at("value"), to);
    for (const Message& input : op.all("inputs"))
      for (const Message& argument : input.at("value").all("arguments"))
        if (argument.has("value")) collect_value(name, argument.at("value"), to);
    for (const Message& inner : op.all("blocks")) collect_block(inner, to);
  }
}

double altered(double v, bool small) { return small ? v + (v == 0 ? 1e-3 : std::abs(v) * 1e-3) : -2.5 * v + 1; }

/// Alters one element of the record in a weights file: a header of 64 bytes with the type, size and offset of the data.
bool alter_record(ModelSource& source, const Leaf& leaf, bool small, std::mt19937& random) {
  const MultiArray file = source.weight_file(leaf.file);
  MultiArray copy(DataType::uint8, file.shape());
  std::memcpy(copy.data(), file.data(), static_cast<size_t>(file.count()));
  auto* bytes = static_cast<std::byte*>(copy.data());
  struct Record {
    uint32_t sentinel, type;
    uint64_t size, offset;
  } record;
  std::memcpy(&record, bytes + leaf.offset, sizeof record);
  const uint64_t width = record.type == 2 ? 4 : record.type == 1 ? 2 : 1;
  if (record.sentinel != 0xDEADBEEF || record.size < width) return false;
  std::byte* at = bytes + record.offset + random() % (record.size / width) * width;
  if (width == 4) {
    float v = 0;
    std::memcpy(&v, at, 4);
    v = static_cast<float>(altered(v, small));
    std::memcpy(at, &v, 4);
  } else {
    // The lowest bit of a float16 is a thousandth; of a code the least step.
    at[0] ^= std::byte{1};
    if (!small) at[width - 1] ^= width == 2 ? std::byte{0x80} : std::byte{0x40};
  }
  source.set_weight_file(leaf.file, copy);
  return true;
}

}  // namespace

std::vector<Leaf> leaves_of(const ModelSource& source) {
  std::vector<Leaf> out;
  const Message model = source.specification();
  for (const char* kind : {"neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor"})
    if (model.has(kind))
      for (const Message& layer : model.at(kind).all("layers")) {
        const auto names = layer.values("name");
        const std::string which = layer.which("layer");
        if (!which.empty() && which != "branch" && which != "loop")
          collect(names.empty() ? "" : std::get<std::string>(names[0]), which, layer.at(which), out);
      }
  if (model.has("mlProgram"))
    for (const Message& function : model.at("mlProgram").all("functions"))
      for (const Message& block : function.at("value").all("block_specializations"))
        collect_block(block.at("value"), out);
  return out;
}

bool alter(ModelSource& source, const Leaf& leaf, bool small, std::mt19937& random) {
  if (!leaf.file.empty()) return alter_record(source, leaf, small, random);
  Message message = leaf.message;
  auto values = message.values(leaf.field);
  if (values.empty()) return false;
  auto& value = values[random() % values.size()];
  if (auto* number = std::get_if<double>(&value)) {
    // Layers take the whole part of an index.
    const bool whole = std::all_of(values.begin(), values.end(), [](const Message::Scalar& v) {
      const auto* n = std::get_if<double>(&v);
      return n != nullptr && *n == std::floor(*n);
    });
    *number = whole && small ? *number + 1 : altered(*number, small);
  } else if (auto* whole = std::get_if<int64_t>(&value)) {
    *whole += small ? 1 : 2;
  } else if (auto* positive = std::get_if<uint64_t>(&value)) {
    *positive += small ? 1 : 2;
  } else if (auto* truth = std::get_if<bool>(&value)) {
    *truth = !*truth;
  } else {
    return false;
  }
  const auto fields = message.fields();
  const auto at = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.name == leaf.field; });
  if (at->repeated)
    message.set(leaf.field, values);
  else
    message.set(leaf.field, value);
  return true;
}

}  // namespace moka::comparison_test
