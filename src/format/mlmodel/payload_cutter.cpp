// SPDX-License-Identifier: Apache-2.0
#include "format/mlmodel/payload_cutter.h"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>
#include <string>

#include "format/mlmodel/payload_edges.h"

namespace moka::format {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr uint32_t index_field = 100001;

void append_varint(std::string& out, uint64_t v) { protozero::write_varint(std::back_inserter(out), v); }
void append_key(std::string& out, uint32_t field, pbf_wire_type type) {
  append_varint(out, (static_cast<uint64_t>(field) << 3) | static_cast<uint32_t>(type));
}

/// One field of a message: its range, and its bytes if it is length-delimited.
struct PayloadField {
  uint32_t number = 0;
  bool delimited = false;
  const char* begin = nullptr;
  const char* end = nullptr;
  data_view view;
};

class Cutter {
 public:
  explicit Cutter(const Bytes& spec) : spec_(spec) {}

  Result<CutSpec> run() {
    data_view all(spec_.text().data(), spec_.size());
    at_ = all.data();
    std::string skeleton;
    try {
      bool changed = message(all, PayloadNode::Model, 1, skeleton);
      if (error_) return std::move(*error_);
      return CutSpec{changed ? Bytes::from(std::move(skeleton)) : spec_, std::move(payloads_)};
    } catch (const protozero::exception& e) {
      return fail(ErrorCode::malformed, "the specification is not valid protobuf at byte ", position(at_), " of ",
                  spec_.size(), ": ", e.what());
    }
  }

 private:
  size_t position(const char* p) const { return static_cast<size_t>(p - spec_.text().data()); }
  Bytes bytes_of(data_view v) const { return spec_.slice(position(v.data()), v.size()); }

  bool next(pbf_reader& reader, PayloadField& field) {
    field.begin = at_ = reader.data().data();
    if (!reader.next()) return false;
    field.number = reader.tag();
    field.delimited = reader.wire_type() == pbf_wire_type::length_delimited;
    if (field.delimited) {
      field.view = reader.get_view();
      field.end = field.view.data() + field.view.size();
    } else {
      reader.skip();
      field.end = reader.data().data();
    }
    return true;
  }

  /// Appends the body of `in` without its payloads to `out` and returns true. Returns false and leaves `out` unchanged
  /// when there is no payload.
  bool message(data_view in, PayloadNode node, int depth, std::string& out) {
    if (error_) return false;
    if (node == PayloadNode::WeightParams) return weight(in, out);
    if (node == PayloadNode::TensorValue) return tensor(in, out);
    if (node == PayloadNode::NearestNeighborsIndex) return samples(in, out);
    if (depth > max_message_depth) {
      error_ = fail(ErrorCode::malformed, "the specification nests messages deeper than ", max_message_depth,
                    " at byte ", position(in.data()));
      return false;
    }
    auto edges = payload_edges(node);
    const char* pending = in.data();
    bool changed = false;
    pbf_reader reader(in);
    PayloadField field;
    while (next(reader, field) && !error_) {
      if (!field.delimited) continue;
      for (const PayloadEdge& edge : edges) {
        if (edge.field != field.number) continue;
        std::string child;
        if (message(field.view, edge.to, depth + 1, child)) {
          out.append(pending, field.begin);
          append_key(out, field.number, pbf_wire_type::length_delimited);
          append_varint(out, child.size());
          out += child;
          pending = field.end;
          changed = true;
        }
        break;
      }
    }
    if (changed) out.append(pending, in.data() + in.size());
    return changed && !error_;
  }

  /// Copies the fields of `in` that `keep` accepts. Returns true when a field was dropped.
  template <class Keep>
  bool filter(data_view in, std::string& out, Keep keep) {
    pbf_reader reader(in);
    PayloadField field;
    bool dropped = false;
    while (next(reader, field)) {
      if (keep(field))
        out.append(field.begin, field.end);
      else
        dropped = true;
    }
    return dropped;
  }

  /// That of the next payload.
  void put_index(std::string& out) const {
    append_key(out, index_field, pbf_wire_type::varint);
    append_varint(out, payloads_.size());
  }

  void put_payload(std::string& out, Payload::Kind kind, data_view view) {
    put_index(out);
    payloads_.push_back({kind, bytes_of(view)});
  }

  bool whole(data_view view, size_t element, const char* what) {
    if (view.size() % element == 0) return true;
    error_ = fail(ErrorCode::malformed, what, " at byte ", position(view.data()), " of the specification has ",
                  view.size(), " bytes, which is not a multiple of ", element);
    return false;
  }

  static std::optional<Payload::Kind> weight_kind(uint32_t field) {
    switch (field) {
      case 1: return Payload::Kind::float32;
      case 2: return Payload::Kind::float16;
      case 30: return Payload::Kind::raw;
      case 31: return Payload::Kind::int8_raw;
      default: return std::nullopt;
    }
  }

  // Removes a payload only when it is alone in its message. The decoder merges every other combination.
  bool weight(data_view in, std::string& out) {
    size_t count = 0;
    bool forged = false;
    PayloadField payload, field;
    for (pbf_reader reader(in); next(reader, field);) {
      if (field.number == index_field) forged = true;
      if (weight_kind(field.number)) {
        ++count;
        payload = field;
      }
    }
    bool cut = count == 1 && payload.delimited && payload.view.size() >= payload_threshold;
    if (!cut && !forged) return false;
    filter(in, out,
           [&](const PayloadField& f) { return f.number != index_field && !(cut && f.number == payload.number); });
    if (cut) {
      auto kind = *weight_kind(payload.number);
      if (kind == Payload::Kind::float32 && !whole(payload.view, 4, "floatValue")) return false;
      if (kind == Payload::Kind::float16 && !whole(payload.view, 2, "float16Value")) return false;
      put_payload(out, kind, payload.view);
    }
    return true;
  }

  bool tensor(data_view in, std::string& out) {
    size_t count = 0;
    bool forged = false;
    PayloadField value, field;
    for (pbf_reader reader(in); next(reader, field);) {
      if (field.number == index_field)
        forged = true;
      else {
        ++count;
        value = field;
      }
    }
    size_t element = value.number == 1 ? 4 : value.number == 6 ? 8 : value.number == 7 ? 1 : 0;
    data_view numbers;
    bool cut = count == 1 && element != 0 && value.delimited && value.view.size() >= payload_threshold &&
               only_field_one(value.view, numbers);
    if (!cut && !forged) return false;
    if (!cut) return filter(in, out, [&](const PayloadField& f) { return f.number != index_field; });
    if (!whole(numbers, element, value.number == 1 ? "TensorValue.floats" : "TensorValue.doubles")) return false;
    append_key(out, value.number, pbf_wire_type::length_delimited);
    append_varint(out, 0);
    put_payload(out, Payload::Kind::tensor, numbers);
    return true;
  }

  /// Removes samples only when they follow each other and have the same size.
  bool samples(data_view in, std::string& out) {
    constexpr uint32_t samples_field = 2;
    SampleRun run;
    const char *first = nullptr, *begin = nullptr, *end = nullptr;
    bool forged = false, cut = true;
    PayloadField field;
    const char* const last = in.data() + in.size();
    for (pbf_reader reader(in); next(reader, field);) {
      forged |= field.number == index_field;
      if (field.number != samples_field || !cut) continue;
      data_view numbers;
      cut = field.delimited && only_field_one(field.view, numbers) && numbers.size() % sizeof(float) == 0;
      if (!cut) continue;
      if (run.count == 0) {
        run.size = numbers.size();
        run.step = static_cast<size_t>(field.end - field.begin);
        begin = field.begin;
        first = numbers.data();
      }
      cut = numbers.size() == run.size && field.begin == begin + run.count * run.step &&
            numbers.data() == first + run.count * run.step;
      run.count++;
      end = field.end;
      // Samples that begin with the same bytes as the first have its size.
      const auto head = static_cast<size_t>(first - begin);
      if (!cut || run.step != head + run.size) continue;
      for (; static_cast<size_t>(last - end) >= run.step && std::memcmp(end, begin, head) == 0; end += run.step)
        run.count++;
      reader = pbf_reader(data_view(end, static_cast<size_t>(last - end)));
    }
    cut = cut && static_cast<size_t>(end - begin) >= payload_threshold;
    if (!cut && !forged) return false;
    filter(in, out,
           [&](const PayloadField& f) { return f.number != index_field && !(cut && f.number == samples_field); });
    if (cut) {
      run.bytes = bytes_of(data_view(first, static_cast<size_t>(end - first)));
      put_index(out);
      payloads_.push_back(
          {Payload::Kind::samples, {}, std::make_shared<const SampleRuns>(std::vector{std::move(run)})});
    }
    return true;
  }

  bool only_field_one(data_view in, data_view& content) {
    size_t count = 0;
    PayloadField field;
    for (pbf_reader reader(in); next(reader, field);) {
      if (field.number != 1 || !field.delimited || ++count > 1) return false;
      content = field.view;
    }
    return count == 1;
  }

  const Bytes& spec_;
  const char* at_ = nullptr;
  std::vector<Payload> payloads_;
  std::optional<Error> error_;
};

}  // namespace

Result<CutSpec> cut_payloads(const Bytes& spec) {
  if (spec.size() > std::numeric_limits<uint32_t>::max())
    return fail(ErrorCode::unsupported, "a specification of ", spec.size(), " bytes is larger than protobuf allows");
  return Cutter(spec).run();
}

}  // namespace moka::format
