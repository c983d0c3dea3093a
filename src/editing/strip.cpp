// SPDX-License-Identifier: Apache-2.0
#include "editing/strip.h"

#include <map>
#include <set>
#include <span>

#include "base/half.h"
#include "editing/operations.h"
#include "editing/pipeline.h"
#include "editing/weights.h"
#include "format/weights/weight_store.h"

namespace moka::editing {
namespace {

using format::BlobType;

constexpr int64_t kFew = 10;                  // tensors of fewer elements are settings rather than weights
constexpr size_t kPattern = size_t{1} << 20;  // bytes, after which numbers repeat

/// The content that replaces weights.
enum class Content { zeros, codes, float16, float16_positive, float32, float32_positive, bfloat16 };

/// A repeating pattern of bytes for each content, so that no weight is in memory as a whole.
class Filler {
 public:
  explicit Filler(std::optional<uint64_t> seed) : seed_(seed) {}

  format::Rope fill(Content content, size_t bytes) {
    const Bytes& pattern = this->pattern(seed_ ? content : Content::zeros);
    format::Rope out;
    for (size_t done = 0; done < bytes; done += pattern.size())
      out.append(pattern.slice(0, std::min(pattern.size(), bytes - done)));
    return out;
  }

 private:
  uint64_t next() {  // splitmix64
    uint64_t z = (*seed_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// From -0.05 to 0.05, or from 0 to 0.1.
  float number(bool positive) {
    constexpr float width = 0.1f;
    constexpr int bits = 24;
    const auto fraction = static_cast<float>(next() >> (64 - bits)) / static_cast<float>(1 << bits);
    return width * (positive ? fraction : fraction - 0.5f);
  }

  const Bytes& pattern(Content content) {
    const auto [it, is_new] = patterns_.try_emplace(content);
    if (!is_new) return it->second;
    std::string bytes;
    const auto add = [&](const auto& value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
    const bool positive = content == Content::float16_positive || content == Content::float32_positive;
    if (content == Content::zeros) bytes.resize(kPattern);
    while (bytes.size() < kPattern) switch (content) {
        case Content::float16:
        case Content::float16_positive: add(half(number(positive)).bits); break;
        case Content::float32:
        case Content::float32_positive: add(number(positive)); break;
        case Content::bfloat16: add(bfloat16(number(positive)).bits); break;
        default: add(next());
      }
    return it->second = Bytes::copy_of(std::as_bytes(std::span(bytes)));
  }

  std::optional<uint64_t> seed_;
  std::map<Content, Bytes> patterns_;
};

/// The content that replaces a blob; nullopt: the blob stays.
std::optional<Content> content_of(BlobType type, bool positive) {
  switch (type) {
    case BlobType::float16: return positive ? Content::float16_positive : Content::float16;
    case BlobType::float32: return positive ? Content::float32_positive : Content::float32;
    case BlobType::bfloat16: return Content::bfloat16;
    case BlobType::uint8:
    case BlobType::int8:
    case BlobType::int4:
    case BlobType::uint4:
    case BlobType::uint2:
    case BlobType::uint3:
    case BlobType::uint6: return Content::codes;
    case BlobType::float8_e4m3fn:
    case BlobType::float8_e5m2: return Content::zeros;
    default: return std::nullopt;  // masks, indices and shapes
  }
}

using Place = std::pair<std::string, int64_t>;  // a file and the offset of a blob

/// Whether a parameter chooses elements of others, or says which elements of a sparse weight are stored.
bool is_structure(std::string_view type, std::string_view parameter) {
  if (type.starts_with("constexpr_")) return parameter.ends_with("mask");
  const bool chooses = type.starts_with("gather") || type.starts_with("scatter") || type.starts_with("one_hot");
  return chooses && parameter == "indices";
}

/// The names of values for parameters of structure.
Result<std::set<std::string>> structures_of(const Message& block) {
  std::set<std::string> out;
  for (const Message& op : MOKA_TRY(block.children("operations"))) {
    const std::string type = MOKA_TRY(text_of(op, "type"));
    for (const Message& entry : MOKA_TRY(op.children("inputs")))
      if (is_structure(type, MOKA_TRY(text_of(entry, "key"))))
        for (const Message& argument : MOKA_TRY(entry.children("value")))
          for (const Message& binding : MOKA_TRY(argument.children("arguments")))
            out.insert(MOKA_TRY(text_of(binding, "name")));
    for (const Message& inner : MOKA_TRY(op.children("blocks"))) out.merge(MOKA_TRY(structures_of(inner)));
  }
  return out;
}

Result<Place> place_of(const Message& value) {
  const Message blob = MOKA_TRY(value.child("blobFileValue"));
  return Place{std::string(format::WeightStore::relative_name(MOKA_TRY(text_of(blob, "fileName")))),
               MOKA_TRY(integer_of(blob, "offset"))};
}

/// Adds to `kept` the blobs of the operation's own structural parameters, not those of its blocks.
Status keep_structure(const Message& op, std::set<Place>& kept) {
  const std::string type = MOKA_TRY(text_of(op, "type"));
  for (const char* parameters : {"inputs", "attributes"})
    for (const Message& entry : MOKA_TRY(op.children(parameters))) {
      if (!is_structure(type, MOKA_TRY(text_of(entry, "key")))) continue;
      MOKA_TRY(for_messages(entry, "MILSpec.Value", [&](const Message& value) -> Status {
        if (MOKA_TRY(value.which("value")) == std::string("blobFileValue")) kept.insert(MOKA_TRY(place_of(value)));
        return {};
      }));
    }
  return {};
}

Status strip_value(Message value, const TensorType& type, Filler& filler) {
  int64_t count = 1;
  for (int64_t size : type.shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return {};
  if (count < kFew || !MOKA_TRY(value.which("value")).starts_with("immediate")) return {};
  const bool positive = type.shape.size() < 2;
  const Message immediate = MOKA_TRY(value.child("immediateValue"));
  if (MOKA_TRY(immediate.which("value")) != std::string("tensor")) return {};
  const Message tensor = MOKA_TRY(immediate.child("tensor"));
  const std::string held = MOKA_TRY(tensor.which("value"));
  if (held == "floats") {
    Message floats = MOKA_TRY(tensor.child(held));
    const size_t bytes = MOKA_TRY(floats.packed("values")).size();
    return floats.set_packed("values",
                             filler.fill(positive ? Content::float32_positive : Content::float32, bytes).joined());
  }
  if (held == "bytes" && type.element == "FLOAT16") {
    Message halves = MOKA_TRY(tensor.child(held));
    const size_t bytes = MOKA_TRY(halves.packed("values")).size();
    return halves.set_packed("values",
                             filler.fill(positive ? Content::float16_positive : Content::float16, bytes).joined());
  }
  return {};
}

/// Strips the message, and notes which blobs of weight files stay and which must not be negative.
Status strip_program(const Message& model, Filler& filler, std::set<Place>& kept, std::set<Place>& positive) {
  for (const ProgramFunction& function : MOKA_TRY(program_functions(model))) {
    const std::set<std::string> structures = MOKA_TRY(structures_of(function.block));
    MOKA_TRY(for_messages(function.block, "MILSpec.Operation", [&](const Message& op) -> Status {
      bool keeps = false;
      for (const std::string& name : MOKA_TRY(values_defined(op))) keeps |= structures.contains(name);
      MOKA_TRY(keep_structure(op, kept));
      return for_messages(op, "MILSpec.Value", [&](const Message& value) -> Status {
        const auto type = MOKA_TRY(tensor_type(MOKA_TRY(child_or_empty(value, "type"))));
        if (!type) return {};
        if (MOKA_TRY(value.which("value")) == std::string("blobFileValue")) {
          const Place place = MOKA_TRY(place_of(value));
          if (keeps) kept.insert(place);
          if (type->shape.size() < 2) positive.insert(place);
          return {};
        }
        return keeps ? Status() : strip_value(value, *type, filler);
      });
    }));
  }
  return {};
}

Status strip_network(const Message& network, Filler& filler) {
  const auto strip = [&](Message weights, bool positive) -> Status {
    const auto replace = [&](const char* field, Content content) -> Status {
      const size_t bytes = MOKA_TRY(weights.packed(field)).size();
      return bytes == 0 ? Status() : weights.set_packed(field, filler.fill(content, bytes).joined());
    };
    MOKA_TRY(replace("floatValue", positive ? Content::float32_positive : Content::float32));
    MOKA_TRY(replace("float16Value", positive ? Content::float16_positive : Content::float16));
    MOKA_TRY(replace("rawValue", Content::codes));
    return replace("int8RawValue", Content::codes);
  };
  MOKA_TRY(for_messages(network, "WeightParams", [&](const Message& weights) { return strip(weights, false); }));
  return for_messages(network, "BatchnormLayerParams", [&](const Message& batchnorm) -> Status {
    return MOKA_TRY(batchnorm.count("variance")) == 0 ? Status() : strip(MOKA_TRY(batchnorm.child("variance")), true);
  });
}

Status strip_model(const Message& model, Filler& filler, std::set<Place>& kept, std::set<Place>& positive) {
  const std::string kind = MOKA_TRY(kind_of(model));
  if (kind == "mlProgram") return strip_program(model, filler, kept, positive);
  if (is_network(kind)) return strip_network(MOKA_TRY(model.child(kind)), filler);
  if (!is_pipeline(kind))
    return fail(ErrorCode::unsupported, "strip: expected ML programs and neural networks, got ", name_of_kind(kind));
  for (const Stage& stage : MOKA_TRY(stages_of(model)))
    MOKA_TRY_IN(strip_model(stage.model, filler, kept, positive), cat("stage '", stage.name, "'"));
  return {};
}

}  // namespace

Status strip_weights(format::ModelSource& source, std::optional<uint64_t> seed) {
  Filler filler(seed);
  std::set<Place> kept, positive;
  MOKA_TRY(strip_model(source.specification, filler, kept, positive));
  for (auto& [name, content] : source.weights) {
    if (!name.ends_with(".bin")) continue;
    const Bytes file = content.joined();
    format::Rope stripped;
    size_t done = 0;
    for (const format::Blob& blob : MOKA_TRY_IN(format::list_blobs(file), cat("'", name, "'"))) {
      const Place place{name, static_cast<int64_t>(blob.offset)};
      const std::optional<Content> filled = content_of(blob.type, positive.contains(place));
      const auto at = static_cast<size_t>(blob.data.data() - file.data());
      if (!filled || kept.contains(place) || blob.data.empty() || at < done || at + blob.data.size() > file.size())
        continue;
      stripped.append(file.slice(done, at - done));
      const format::Rope replacement = filler.fill(*filled, blob.data.size());
      for (const Bytes& piece : replacement.pieces()) stripped.append(piece);
      done = at + blob.data.size();
    }
    stripped.append(file.slice(done, file.size() - done));
    content = std::move(stripped);
  }
  return {};
}

}  // namespace moka::editing
