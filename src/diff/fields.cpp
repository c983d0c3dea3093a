// SPDX-License-Identifier: Apache-2.0
#include "diff/fields.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "moka/build.h"

namespace moka::diff {
namespace {

using ComparedFeatures = std::vector<ModelComparison::Feature>;

std::string text_of(const Message::Scalar& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::string>)
          return v;
        else if constexpr (std::is_same_v<T, std::vector<std::byte>>)
          return cat(v.size(), " bytes");
        else
          return cat(v);
      },
      value);
}

class FieldComparer {
 public:
  void run(const Message& a, const Message& b, const std::string& place) {
    for (const Message::Field& field : a.fields()) {
      const std::string where = place.empty() ? field.name : cat(place, ".", field.name);
      if (where == "description" || where == "specificationVersion") continue;
      const size_t mine = a.size(field.name), other = b.size(field.name);
      if (mine == 0 && other == 0) continue;
      if (field.is_message)
        messages(a, b, field, where);
      else
        scalars(a, b, field, where);
    }
  }
  ComparedFeatures take() { return std::move(out_); }

  void add(const std::string& what, const std::string& a, const std::string& b) { out_.push_back({what, a, b}); }

 private:
  /// The name of a layer or a feature; empty: the message has none.
  static std::string name_of(const Message& message) {
    for (const Message::Field& field : message.fields())
      if (field.name == "name" && field.type == "text" && !field.repeated && message.has("name"))
        return text_of(message.values("name")[0]);
    return "";
  }
  static std::string presence(bool is_there, const std::string& type) { return is_there ? type : ""; }

  void messages(const Message& a, const Message& b, const Message::Field& field, const std::string& where) {
    const size_t mine = a.size(field.name), other = b.size(field.name);
    for (size_t i = 0; i < std::max(mine, other); ++i) {
      const auto name = [&](const Message& message, size_t count) {
        return i < count ? name_of(message.at(field.name, i)) : "";
      };
      const std::string own = name(a, mine), called = own.empty() ? name(b, other) : own;
      const std::string here = !field.repeated  ? where
                               : called.empty() ? cat(where, "[", i, "]")
                                                : cat(where, "[", i, " '", called, "']");
      if (i < mine && i < other)
        run(a.at(field.name, i), b.at(field.name, i), here);
      else
        add(here, presence(i < mine, field.type), presence(i < other, field.type));
    }
  }

  void scalars(const Message& a, const Message& b, const Message::Field& field, const std::string& where) {
    const std::vector<Message::Scalar> mine = a.values(field.name), other = b.values(field.name);
    if (mine == other) return;
    if (mine.size() <= 1 && other.size() <= 1) {
      const std::string x = mine.empty() ? "" : text_of(mine[0]), y = other.empty() ? "" : text_of(other[0]);
      // Values of bytes have the same size and other contents.
      return add(where, x, x == y ? cat(y, ", differ") : y);
    }
    size_t different = 0;
    for (size_t i = 0; i < std::min(mine.size(), other.size()); ++i) different += mine[i] != other[i];
    const auto values = [](size_t n) { return cat(n, " values"); };
    add(where, values(mine.size()),
        mine.size() == other.size() ? cat(values(other.size()), ", ", different, " of them differ")
                                    : values(other.size()));
  }

  ComparedFeatures out_;
};

}  // namespace

std::vector<ModelComparison::Feature> compare_fields(const std::string& a, const std::string& b) {
  const ModelSource first = ModelSource::open(a), second = ModelSource::open(b);
  FieldComparer comparer;
  comparer.run(first.specification(), second.specification(), "");
  const std::vector<std::string> ours = first.weight_files(), theirs = second.weight_files();
  std::vector<std::string> files = ours;
  for (const std::string& file : theirs)
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
  for (const std::string& file : files) {
    const auto content = [&](const ModelSource& source, const std::vector<std::string>& names) {
      const bool is_there = std::find(names.begin(), names.end(), file) != names.end();
      return is_there ? source.weight_file(file) : MultiArray();
    };
    const MultiArray x = content(first, ours), y = content(second, theirs);
    const auto bytes = [](const MultiArray& array) { return array.count() == 0 ? "" : cat(array.count(), " bytes"); };
    if (x.count() == y.count() &&
        (x.count() == 0 || std::memcmp(x.data(), y.data(), static_cast<size_t>(x.count())) == 0))
      continue;
    comparer.add(cat("file ", file), bytes(x), x.count() == y.count() ? cat(bytes(y), ", differ") : bytes(y));
  }
  return comparer.take();
}

}  // namespace moka::diff
