// SPDX-License-Identifier: Apache-2.0
#include "format/message/message.h"

#include <algorithm>
#include <limits>
#include <map>

#include "format/message/node.h"
#include "format/message/scalar.h"

namespace moka::format {
namespace {

using Node = Message::Node;

std::shared_ptr<Node> child_node(WireField& f) {
  if (f.child == nullptr) {
    f.child = std::make_shared<Node>();
    f.child->def = f.def->message;
    f.child->encoded = f.content;
  }
  return f.child;
}

/// Fields stay in the order of their numbers, as protobuf writes them.
WireField& insert(Node& node, WireField field) {
  auto at = node.fields.end();
  while (at != node.fields.begin() && (at - 1)->number > field.number) --at;
  node.changed = true;
  return *node.fields.insert(at, std::move(field));
}

std::string list_of_fields(const MessageDef& def) {
  std::string out;
  for (const auto& [number, field] : def.fields) out += (out.empty() ? "" : ", ") + field.name;
  return out.empty() ? "none" : out;
}

bool is_default(const WireField& f) { return f.wire == Wire::delimited ? f.content.empty() : f.bits == 0; }

}  // namespace

Result<Message> Message::make(std::string_view type) { return parse(type, {}); }

Result<Message> Message::parse(std::string_view type, Bytes bytes) {
  const MessageDef* def = find_message(type);
  if (def == nullptr) return fail(ErrorCode::invalid_argument, "the specification has no message '", type, "'");
  auto node = std::make_shared<Node>();
  node->def = def;
  node->encoded = std::move(bytes);
  MOKA_TRY(split(*node));
  return Message(std::move(node));
}

const MessageDef& Message::def() const { return *node_->def; }
Message Message::copy() const { return Message(deep_copy(*node_)); }

Result<const FieldDef*> Message::field_of(std::string_view name) const {
  MOKA_TRY(split(*node_));
  if (const FieldDef* def = node_->def->find(name)) return def;
  return fail(ErrorCode::invalid_argument, "message ", node_->def->name, " has no field '", name,
              "'; it has: ", list_of_fields(*node_->def));
}

Result<const FieldDef*> Message::message_field(std::string_view name) const {
  const FieldDef* def = MOKA_TRY(field_of(name));
  if (def->kind == FieldKind::message) return def;
  return fail(ErrorCode::invalid_argument, "field '", name, "' of ", node_->def->name, ": expected ",
              description_of(*def), ", got a message");
}

Result<std::vector<std::string>> Message::names() const {
  MOKA_TRY(split(*node_));
  std::map<uint32_t, const FieldDef*> present;
  for (const WireField& f : node_->fields)
    if (f.def != nullptr && packed_count(f) > 0) present.emplace(f.def->number, f.def);
  std::vector<std::string> out;
  for (const auto& [number, def] : present) out.push_back(def->name);
  return out;
}

Result<size_t> Message::count(std::string_view name) const {
  const FieldDef* def = MOKA_TRY(field_of(name));
  size_t n = 0;
  for (const WireField& f : node_->fields)
    if (f.def == def) n += packed_count(f);
  return def->repeated ? n : std::min<size_t>(n, 1);
}

Result<std::string> Message::which(std::string_view oneof) const {
  MOKA_TRY(split(*node_));
  const auto& names = node_->def->oneofs;
  const auto it = std::find(names.begin(), names.end(), oneof);
  if (it == names.end())
    return fail(ErrorCode::invalid_argument, "message ", node_->def->name, " has no oneof '", oneof, "'");
  for (auto f = node_->fields.rbegin(); f != node_->fields.rend(); ++f)
    if (f->def != nullptr && f->def->oneof == it - names.begin()) return f->def->name;
  return std::string();
}

Result<std::vector<Scalar>> Message::values(std::string_view name) const {
  const FieldDef* def = MOKA_TRY(field_of(name));
  if (def->kind == FieldKind::message)
    return fail(ErrorCode::invalid_argument, "field '", name, "' of ", node_->def->name, " holds messages");
  std::vector<Scalar> out;
  for (const WireField& f : node_->fields)
    if (f.def == def) MOKA_TRY_IN(read_scalars(f, out), cat("field '", name, "' of ", node_->def->name));
  if (!def->repeated && out.size() > 1) out.erase(out.begin(), out.end() - 1);
  return out;
}

Result<Bytes> Message::packed(std::string_view name) const {
  const FieldDef* def = MOKA_TRY(field_of(name));
  const bool numbers = def->repeated && (def->kind == FieldKind::float32 || def->kind == FieldKind::float64);
  if (!numbers && (def->kind != FieldKind::bytes || def->repeated))
    return fail(ErrorCode::invalid_argument, "field '", name, "' of ", node_->def->name,
                ": expected repeated floats, repeated doubles or bytes, got ", description_of(*def));
  Rope all;
  for (const WireField& f : node_->fields) {
    if (f.def != def) continue;
    if (!numbers) all = Rope();  // the last one counts
    if (f.wire == Wire::delimited)
      all.append(f.content);
    else
      all.append(std::string_view(reinterpret_cast<const char*>(&f.bits), f.wire == Wire::fixed64 ? 8 : 4));
  }
  const size_t element = def->kind == FieldKind::float64 ? sizeof(double) : sizeof(float);
  if (numbers && all.size() % element != 0)
    return fail(ErrorCode::malformed, "field '", name, "' of ", node_->def->name, ": ", all.size(),
                " bytes are not a multiple of ", element);
  return all.joined();
}

Result<Message> Message::child(std::string_view name, size_t index) const {
  const FieldDef* def = MOKA_TRY(message_field(name));
  size_t n = 0;
  for (WireField& f : node_->fields)
    if (f.def == def && n++ == index) {
      std::shared_ptr<Node> node = child_node(f);
      MOKA_TRY(split(*node));
      return Message(std::move(node));
    }
  return fail(ErrorCode::invalid_argument, "field '", name, "' of ", node_->def->name, ": expected an index below ", n,
              ", got ", index);
}

Result<std::vector<Message>> Message::children(std::string_view name) const {
  const FieldDef* def = MOKA_TRY(message_field(name));
  std::vector<Message> out;
  for (WireField& f : node_->fields) {
    if (f.def != def) continue;
    out.emplace_back(child_node(f));
    MOKA_TRY(split(*out.back().node_));
  }
  return out;
}

void Message::clear_others(const FieldDef& def) {
  if (def.oneof < 0) return;
  const auto other = [&](const WireField& f) { return f.def != nullptr && f.def->oneof == def.oneof && f.def != &def; };
  if (std::erase_if(node_->fields, other) > 0) node_->changed = true;
}

Status Message::clear(const FieldDef& def) {
  if (std::erase_if(node_->fields, [&](const WireField& f) { return f.number == def.number; }) > 0)
    node_->changed = true;
  return {};
}

Status Message::clear(std::string_view name) { return clear(*MOKA_TRY(field_of(name))); }

Status Message::set(std::string_view name, const Scalar& value) {
  const FieldDef* def = MOKA_TRY(field_of(name));
  if (def->repeated) return set_all(name, std::span(&value, 1));
  WireField f = MOKA_TRY_IN(write_scalar(*def, value), cat("message ", node_->def->name));
  clear_others(*def);
  MOKA_TRY(clear(*def));
  if (def->has_presence || !is_default(f)) insert(*node_, std::move(f));
  return {};
}

Status Message::set_all(std::string_view name, std::span<const Scalar> values) {
  const FieldDef* def = MOKA_TRY(field_of(name));
  if (!def->repeated)
    return fail(ErrorCode::invalid_argument, "message ", node_->def->name, ": field '", name, "': expected ",
                description_of(*def), ", got a list");
  std::vector<WireField> fields = MOKA_TRY_IN(write_scalars(*def, values), cat("message ", node_->def->name));
  MOKA_TRY(clear(*def));
  for (WireField& f : fields) insert(*node_, std::move(f));
  return {};
}

Status Message::set_packed(std::string_view name, Bytes bytes) {
  const FieldDef* def = MOKA_TRY(field_of(name));
  const size_t element = def->kind == FieldKind::float64   ? sizeof(double)
                         : def->kind == FieldKind::float32 ? sizeof(float)
                                                           : 1;
  const bool numbers = def->repeated && element > 1;
  if ((!numbers && (def->kind != FieldKind::bytes || def->repeated)) || bytes.size() % element != 0)
    return fail(ErrorCode::invalid_argument, "message ", node_->def->name, ": field '", name, "': expected ",
                description_of(*def), ", got ", bytes.size(), " bytes");
  clear_others(*def);
  MOKA_TRY(clear(*def));
  if (!bytes.empty() || def->has_presence)
    insert(*node_, {def->number, Wire::delimited, def, 0, std::move(bytes), nullptr});
  return {};
}

Status Message::set(std::string_view name, const Message& value) {
  const FieldDef* def = MOKA_TRY(message_field(name));
  if (def->message != value.node_->def)
    return fail(ErrorCode::invalid_argument, "message ", node_->def->name, ": field '", name, "': expected a ",
                def->message->name, ", got a ", value.node_->def->name);
  std::shared_ptr<Node> copied = deep_copy(*value.node_);
  clear_others(*def);
  if (!def->repeated) MOKA_TRY(clear(*def));
  insert(*node_, {def->number, Wire::delimited, def, 0, {}, std::move(copied)});
  return {};
}

Status Message::set_all(std::string_view name, std::span<const Message> values) {
  const FieldDef* def = MOKA_TRY(message_field(name));
  if (!def->repeated)
    return fail(ErrorCode::invalid_argument, "message ", node_->def->name, ": field '", name, "': expected a ",
                def->message->name, ", got a list");
  for (const Message& value : values)
    if (value.node_->def != def->message)
      return fail(ErrorCode::invalid_argument, "message ", node_->def->name, ": field '", name, "': expected a ",
                  def->message->name, ", got a ", value.node_->def->name);
  std::vector<WireField> kept;
  const auto add = [&] {
    for (const Message& value : values) kept.push_back({def->number, Wire::delimited, def, 0, {}, value.node_});
  };
  bool added = false;
  for (WireField& f : node_->fields) {
    if (f.number > def->number && !added) {
      add();
      added = true;
    }
    if (f.number != def->number) kept.push_back(std::move(f));
  }
  if (!added) add();
  node_->fields = std::move(kept);
  node_->changed = true;
  return {};
}

Result<Message> Message::edit(std::string_view name) {
  const FieldDef* def = MOKA_TRY(message_field(name));
  clear_others(*def);
  if (!def->repeated && MOKA_TRY(count(name)) > 0) return child(name);
  auto node = std::make_shared<Node>();
  node->def = def->message;
  node->split = true;
  return Message(insert(*node_, {def->number, Wire::delimited, def, 0, {}, std::move(node)}).child);
}

Status Message::remove(std::string_view name, size_t index) {
  const FieldDef* def = MOKA_TRY(field_of(name));
  if (is_packable(def->kind))
    return fail(ErrorCode::invalid_argument, "field '", name, "' of ", node_->def->name,
                ": numbers are replaced together, not removed one by one");
  size_t n = 0;
  for (auto it = node_->fields.begin(); it != node_->fields.end(); ++it)
    if (it->def == def && n++ == index) {
      node_->fields.erase(it);
      node_->changed = true;
      return {};
    }
  return fail(ErrorCode::invalid_argument, "field '", name, "' of ", node_->def->name, ": expected an index below ", n,
              ", got ", index);
}

}  // namespace moka::format
