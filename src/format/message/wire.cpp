// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <limits>
#include <map>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>

#include "format/message/node.h"
#include "format/mlmodel/payload_cutter.h"

namespace moka::format {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using Node = Message::Node;

WireField read_field(pbf_reader& reader, const Node& node) {
  WireField out;
  out.number = reader.tag();
  out.wire = static_cast<Wire>(reader.wire_type());
  switch (out.wire) {
    case Wire::varint: out.bits = reader.get_uint64(); break;
    case Wire::fixed64: out.bits = reader.get_fixed64(); break;
    case Wire::fixed32: out.bits = reader.get_fixed32(); break;
    case Wire::delimited: {
      const data_view view = reader.get_view();
      const auto* begin = reinterpret_cast<const std::byte*>(view.data());
      out.content = {{begin, view.size()}, node.encoded.owner};
      break;
    }
    default: reader.skip();  // throws: groups are not part of proto3
  }
  const FieldDef* def = node.def->find(out.number);
  if (def == nullptr) return out;
  const bool packed = out.wire == Wire::delimited && def->repeated && is_packable(def->kind);
  if (packed || out.wire == wire_of(def->kind)) out.def = def;
  return out;
}

/// Protobuf merges messages of one field; appending their bytes does the same.
void merge_messages(Node& node) {
  std::map<uint32_t, size_t> first;
  bool merged = false;
  for (size_t i = 0; i < node.fields.size(); ++i) {
    WireField& f = node.fields[i];
    if (f.def == nullptr || f.def->kind != FieldKind::message || f.def->repeated) continue;
    const auto [it, is_new] = first.emplace(f.number, i);
    if (is_new) continue;
    Bytes& whole = node.fields[it->second].content;
    whole = Bytes::from(std::string(whole.text()) + std::string(f.content.text()));
    f.number = 0;  // no field has it
    merged = true;
  }
  if (merged) std::erase_if(node.fields, [](const WireField& f) { return f.number == 0; });
}

void put_varint(std::string& out, uint64_t v) { protozero::write_varint(std::back_inserter(out), v); }

size_t varint_size(uint64_t v) { return static_cast<size_t>(protozero::length_of_varint(v)); }

size_t value_size(const WireField& f, size_t content) {
  switch (f.wire) {
    case Wire::varint: return varint_size(f.bits);
    case Wire::fixed64: return sizeof(uint64_t);
    case Wire::fixed32: return sizeof(uint32_t);
    case Wire::delimited: return varint_size(content) + content;
  }
  return 0;
}

constexpr unsigned wire_bits = 3;

/// Sets the sizes of the node and of those below. Returns whether any of them has changed.
bool measure(Node& node) {
  bool changed = node.changed;
  size_t size = 0;
  for (WireField& f : node.fields) {
    if (f.child != nullptr) changed |= measure(*f.child);
    size += varint_size(uint64_t{f.number} << wire_bits) +
            value_size(f, f.child != nullptr ? f.child->size : f.content.size());
  }
  node.changed = changed;
  node.size = changed ? size : node.encoded.size();
  return changed;
}

void emit(const Node& node, Rope& out) {
  if (!node.changed) return out.append(node.encoded);
  for (const WireField& f : node.fields) {
    std::string head;
    put_varint(head, (uint64_t{f.number} << wire_bits) | static_cast<uint64_t>(f.wire));
    switch (f.wire) {
      case Wire::varint: put_varint(head, f.bits); break;
      case Wire::fixed64:
      case Wire::fixed32:
        head.append(reinterpret_cast<const char*>(&f.bits),
                    f.wire == Wire::fixed64 ? sizeof(uint64_t) : sizeof(uint32_t));
        break;
      case Wire::delimited: put_varint(head, f.child != nullptr ? f.child->size : f.content.size()); break;
    }
    out.append(std::string_view(head));
    if (f.child != nullptr)
      emit(*f.child, out);
    else if (f.wire == Wire::delimited)
      out.append(f.content);
  }
}

Status decode_below(Node& node, int depth) {
  if (depth > max_message_depth) return fail(ErrorCode::malformed, "messages nest deeper than ", max_message_depth);
  MOKA_TRY(split(node));
  node.changed = true;
  for (WireField& f : node.fields) {
    if (f.def == nullptr || f.def->kind != FieldKind::message) continue;
    if (f.child == nullptr) {
      f.child = std::make_shared<Node>();
      f.child->def = f.def->message;
      f.child->encoded = f.content;
    }
    MOKA_TRY(decode_below(*f.child, depth + 1));
  }
  return {};
}

}  // namespace

bool is_packable(FieldKind kind) {
  return kind != FieldKind::text && kind != FieldKind::bytes && kind != FieldKind::message;
}

Wire wire_of(FieldKind kind) {
  switch (kind) {
    case FieldKind::float32: return Wire::fixed32;
    case FieldKind::float64: return Wire::fixed64;
    case FieldKind::text:
    case FieldKind::bytes:
    case FieldKind::message: return Wire::delimited;
    default: return Wire::varint;
  }
}

Status split(Node& node) {
  if (node.split) return {};
  try {
    pbf_reader reader(node.encoded.text().data(), node.encoded.size());
    while (reader.next()) node.fields.push_back(read_field(reader, node));
  } catch (const protozero::exception& e) {
    node.fields.clear();
    return fail(ErrorCode::malformed, "message ", node.def->name, " of ", node.encoded.size(),
                " bytes does not decode: ", e.what());
  }
  merge_messages(node);
  node.split = true;
  return {};
}

std::shared_ptr<Node> deep_copy(const Node& node) {
  auto out = std::make_shared<Node>(node);
  for (WireField& f : out->fields)
    if (f.child != nullptr) f.child = deep_copy(*f.child);
  return out;
}

Status Message::decode_all() { return decode_below(*node_, 0); }

Result<Rope> Message::serialize() const {
  measure(*node_);
  if (node_->size > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    return fail(ErrorCode::unsupported, "a message ", node_->def->name, " of ", node_->size, " bytes; protobuf allows ",
                std::numeric_limits<int32_t>::max(), ". An ML program keeps larger weights in a file of their own");
  Rope out;
  emit(*node_, out);
  return out;
}

}  // namespace moka::format
