// SPDX-License-Identifier: Apache-2.0
#include "report/field.h"

#include <fstream>
#include <iterator>

#include "base/error.h"

namespace moka::reporting {

Field Field::at(const char* key) const {
  if (!json_->is_object()) bad("an object", what());
  const auto found = json_->find(key);
  if (found == json_->end()) bad(cat("a field '", key, "'"), "none");
  return Field(*found, *this, key, 0);
}

std::optional<Field> Field::find(const char* key) const {
  if (!json_->is_object()) bad("an object", what());
  const auto found = json_->find(key);
  if (found == json_->end() || found->is_null()) return std::nullopt;
  return Field(*found, *this, key, 0);
}

std::vector<std::string> Field::names() const {
  if (!json_->is_object()) bad("an object", what());
  std::vector<std::string> out;
  for (const auto& item : json_->items()) out.push_back(item.key());
  return out;
}

Field Field::member(const std::string& name) const {
  if (!json_->is_object()) bad("an object", what());
  const auto found = json_->find(name);
  if (found == json_->end()) bad(cat("a field '", name, "'"), "none");
  return Field(*found, *this, found.key().c_str(), 0);
}

size_t Field::size() const {
  if (!json_->is_array()) bad("a list", what());
  return json_->size();
}

Field Field::item(size_t index) const { return Field((*json_)[index], *this, nullptr, index); }

std::vector<std::pair<std::string, double>> Field::entries() const {
  if (!json_->is_object()) bad("an object", what());
  std::vector<std::pair<std::string, double>> out;
  for (const auto& [name, value] : json_->items()) out.emplace_back(name, Field(value, *this, "*", 0).number());
  return out;
}

std::string Field::text() const {
  if (!json_->is_string()) bad("a text", what());
  return json_->get<std::string>();
}

double Field::number() const {
  if (!json_->is_number()) bad("a number", what());
  return json_->get<double>();
}

std::vector<double> Field::numbers() const {
  std::vector<double> out(size());
  for (size_t i = 0; i < out.size(); i++) out[i] = item(i).number();
  return out;
}

std::string Field::text_or(const char* key) const {
  const auto found = find(key);
  return found ? found->text() : std::string();
}

std::vector<std::string> Field::texts_or(const char* key) const {
  std::vector<std::string> out;
  if (const auto found = find(key))
    for (size_t i = 0; i < found->size(); i++) out.push_back(found->item(i).text());
  return out;
}

double Field::number_or(const char* key, double otherwise) const {
  const auto found = find(key);
  return found ? found->number() : otherwise;
}

bool Field::flag_or(const char* key, bool otherwise) const {
  const auto found = find(key);
  if (!found) return otherwise;
  if (!found->json_->is_boolean()) found->bad("true or false", found->what());
  return found->json_->get<bool>();
}

void Field::bad(std::string_view expected, std::string_view got) const {
  throw BadField(cat("one in which '", place(), "' should be ", expected, " and is ", got));
}

std::string Field::place() const {
  if (parent_ == nullptr) return "the report";
  const std::string before = parent_->parent_ == nullptr ? std::string() : parent_->place();
  if (key_ == nullptr) return cat(before, "[", index_, "]");
  return before.empty() ? std::string(key_) : cat(before, ".", key_);
}

std::string Field::what() const {
  switch (json_->type()) {
    case Json::value_t::null: return "absent";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "a text";
    case Json::value_t::boolean: return json_->get<bool>() ? "true" : "false";
    default: return json_->dump();
  }
}

std::string file_text(const std::filesystem::path& path) {
  // The system would cut the path there and open another file.
  if (const size_t at = path.native().find('\0'); at != std::string::npos)
    throw Exception(ErrorKind::invalid_argument,
                    cat(path.native().substr(0, at), ": expected a path without NUL bytes, got one at byte ", at));
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw Exception(ErrorKind::not_found, cat(path.string(), ": does not exist"));
  if (std::filesystem::is_directory(path, ignored))
    throw Exception(ErrorKind::io, cat(path.string(), ": expected a file, got a folder"));
  std::ifstream file(path, std::ios::binary);
  std::string out{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || !file.is_open()) throw Exception(ErrorKind::io, cat(path.string(), ": cannot be read"));
  return out;
}

}  // namespace moka::reporting
