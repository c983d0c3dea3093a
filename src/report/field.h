// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/json.h"

namespace moka::reporting {

/// "'settings[0].first' that is a text, where a number belongs".
class BadField : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value of a JSON text and where it is. It must not outlive those that it is made of. What is not as expected throws
/// BadField. Numbers that are null were not finite when they were written.
class Field {
 public:
  explicit Field(const Json& json) : json_(&json) {}

  Field at(const char* key) const;
  /// Nothing for a field that is absent or null.
  std::optional<Field> find(const char* key) const;
  /// The names of an object's members.
  std::vector<std::string> names() const;
  Field member(const std::string& name) const;
  /// The size and the items of a list.
  size_t size() const;
  Field item(size_t index) const;
  /// The names and numbers of an object.
  std::vector<std::pair<std::string, double>> entries() const;

  bool is_text() const { return json_->is_string(); }
  std::string text() const;
  double number() const;
  std::vector<double> numbers() const;
  template <class Whole>
  Whole whole() const {
    const bool is_signed = json_->is_number_integer() && !json_->is_number_unsigned();
    const bool fits = json_->is_number_unsigned() ? std::in_range<Whole>(json_->get<uint64_t>())
                                                  : is_signed && std::in_range<Whole>(json_->get<int64_t>());
    if (fits) return is_signed ? static_cast<Whole>(json_->get<int64_t>()) : static_cast<Whole>(json_->get<uint64_t>());
    bad("a whole number", what());
  }

  std::string text_or(const char* key) const;  ///< "" if absent
  std::vector<std::string> texts_or(const char* key) const;
  double number_or(const char* key, double otherwise) const;
  bool flag_or(const char* key, bool otherwise) const;
  template <class Whole>
  Whole whole_or(const char* key, Whole otherwise) const {
    const auto found = find(key);
    return found ? found->whole<Whole>() : otherwise;
  }

  [[noreturn]] void bad(std::string_view expected, std::string_view got) const;

 private:
  Field(const Json& json, const Field& parent, const char* key, size_t index)
      : json_(&json), parent_(&parent), key_(key), index_(index) {}
  std::string place() const;
  /// What it is, for messages: "a text".
  std::string what() const;

  const Json* json_;
  const Field* parent_ = nullptr;
  const char* key_ = nullptr;  ///< null: an item of a list
  size_t index_ = 0;
};

/// The text of a file. Throws not_found, io, invalid_argument (a NUL byte in the path).
std::string file_text(const std::filesystem::path& path);

}  // namespace moka::reporting
