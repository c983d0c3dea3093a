// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "api/c_support.h"

using namespace moka::api;
using moka::cat;

namespace {

void set(moka_features* features, const char* name, moka::FeatureValue value) {
  moka_features& f = need(features, "features");
  std::string_view key = need_text(name, "name");
  f.values[key] = std::move(value);
  if (auto it = f.views.find(key); it != f.views.end()) f.views.erase(it);
}

template <class T>
const T& get(const moka_features* features, const char* name, const char* expected) {
  const moka::FeatureValue& v = need(features, "features").values.at(need_text(name, "name"));
  if (const T* found = std::get_if<T>(&v)) return *found;
  wrong(cat("feature '", name, "': expected ", expected, ", got ", moka::describe(v)));
}

/// The view of a value, which `fill` completes when it is new. Earlier pointers into it stay valid.
template <class Fill>
const View& view_of(const moka_features* features, const char* name, Fill fill) {
  const auto [it, is_new] = features->views.try_emplace(name);
  if (is_new) fill(it->second);
  return it->second;
}

/// Calls `make`, whose errors then name the feature.
template <class Make>
auto of_feature(const char* name, Make make) {
  const std::string feature(need_text(name, "name"));
  try {
    return make();
  } catch (const moka::Exception& e) {
    throw moka::Exception(e.kind(), cat("feature '", feature, "': ", e.what()));
  }
}

}  // namespace

extern "C" {

moka_status moka_features_new(moka_features** features) {
  return guarded([&] { need(features, "features") = new moka_features; });
}

void moka_features_free(moka_features* features) { delete features; }

void moka_features_clear(moka_features* features) {
  if (features == nullptr) return;
  features->values = {};
  features->views.clear();
}

moka_status moka_features_set_array(moka_features* features, const char* name, const moka_array* array) {
  return guarded([&] {
    const moka::MultiArray given = of_feature(name, [&] { return borrowed_array(need(array, "array")); });
    set(features, name, need(features, "features").copies ? given.converted(given.type()) : given);
  });
}

moka_status moka_features_set_image(moka_features* features, const char* name, const moka_image* image) {
  return guarded([&] {
    const moka_image& i = need(image, "image");
    auto format = pixel_format_of(i.format);
    const moka::Image given =
        of_feature(name, [&] { return moka::Image(i.pixels, i.width, i.height, format, i.row_bytes); });
    if (!need(features, "features").copies) return set(features, name, given);
    moka::Image copy(i.width, i.height, format);
    for (int64_t y = 0; y < i.height; y++)
      std::memcpy(copy.pixels.get() + y * copy.row_bytes, given.pixels.get() + y * given.row_bytes,
                  static_cast<size_t>(i.width) * moka::bytes_per_pixel(format));
    set(features, name, std::move(copy));
  });
}

moka_status moka_features_set_pixel_buffer(moka_features* features, const char* name, const moka_pixel_buffer* buffer) {
  return guarded([&] {
    const moka::PixelBuffer given = of_feature(name, [&] { return borrowed_pixel_buffer(buffer); });
    set(features, name, need(features, "features").copies ? copied(given) : given);
  });
}

moka_status moka_features_set_int64(moka_features* features, const char* name, int64_t value) {
  return guarded([&] { set(features, name, value); });
}

moka_status moka_features_set_double(moka_features* features, const char* name, double value) {
  return guarded([&] { set(features, name, value); });
}

moka_status moka_features_set_string(moka_features* features, const char* name, const char* value) {
  return guarded([&] { set(features, name, std::string(need_text(value, "value"))); });
}

moka_status moka_features_set_dictionary(moka_features* features, const char* name, const moka_dictionary* dictionary) {
  return guarded([&] {
    const moka_dictionary& d = need(dictionary, "dictionary");
    moka::Dictionary out;
    out.string_keys = d.int64_keys == nullptr;
    if (d.count > 0 && (d.string_keys == nullptr) == (d.int64_keys == nullptr))
      wrong("dictionary: expected one of two arrays of keys");
    if (d.count > 0) need(d.values, "values");
    for (size_t i = 0; i < d.count; i++) {
      if (out.string_keys)
        out.strings[std::string(need_text(d.string_keys[i], "key"))] = d.values[i];
      else
        out.ints[d.int64_keys[i]] = d.values[i];
    }
    set(features, name, std::move(out));
  });
}

moka_status moka_features_set_sequence(moka_features* features, const char* name, const moka_sequence* sequence) {
  return guarded([&] {
    const moka_sequence& s = need(sequence, "sequence");
    if (s.count > 0 && (s.strings == nullptr) == (s.int64s == nullptr)) wrong("sequence: expected strings or integers");
    if (s.int64s != nullptr) return set(features, name, moka::Int64Sequence(s.int64s, s.int64s + s.count));
    moka::StringSequence out;
    for (size_t i = 0; i < s.count; i++) out.emplace_back(need_text(s.strings[i], "string of a sequence"));
    set(features, name, std::move(out));
  });
}

moka_status moka_features_set_random(moka_features* features, const moka_model* model, uint64_t seed) {
  return guarded([&] {
    moka_features& f = need(features, "features");
    for (auto& [name, value] : need(model, "model").model.random_inputs(seed)) {
      f.values[name] = value;
      f.views.erase(name);
    }
  });
}

size_t moka_features_count(const moka_features* features) { return features == nullptr ? 0 : features->values.size(); }

const char* moka_features_name(const moka_features* features, size_t index) {
  return index < moka_features_count(features)
             ? (features->values.begin() + static_cast<ptrdiff_t>(index))->first.c_str()
             : nullptr;
}

moka_feature_type moka_features_type(const moka_features* features, const char* name) {
  if (features == nullptr || name == nullptr) return MOKA_TYPE_NONE;
  const moka::FeatureValue* v = features->values.find(name);
  if (v == nullptr) return MOKA_TYPE_NONE;
  constexpr moka_feature_type types[] = {
      MOKA_TYPE_NONE,  MOKA_TYPE_INT64,      MOKA_TYPE_DOUBLE,   MOKA_TYPE_STRING,   MOKA_TYPE_MULTI_ARRAY,
      MOKA_TYPE_IMAGE, MOKA_TYPE_DICTIONARY, MOKA_TYPE_SEQUENCE, MOKA_TYPE_SEQUENCE, MOKA_TYPE_IMAGE};
  static_assert(std::size(types) == std::variant_size_v<moka::FeatureValue>);
  return types[v->index()];
}

moka_status moka_features_get_array(const moka_features* features, const char* name, moka_array* array) {
  return guarded([&] { need(array, "array") = c_array(get<moka::MultiArray>(features, name, "a MultiArray")); });
}

moka_status moka_features_get_image(const moka_features* features, const char* name, moka_image* image) {
  return guarded([&] {
    const auto& i = get<moka::Image>(features, name, "an Image");
    need(image, "image") = {i.pixels.get(), i.width, i.height, i.row_bytes, static_cast<moka_pixel_format>(i.format)};
  });
}

moka_status moka_features_get_int64(const moka_features* features, const char* name, int64_t* value) {
  return guarded([&] { need(value, "value") = get<int64_t>(features, name, "Int64"); });
}

moka_status moka_features_get_double(const moka_features* features, const char* name, double* value) {
  return guarded([&] { need(value, "value") = get<double>(features, name, "Double"); });
}

moka_status moka_features_get_string(const moka_features* features, const char* name, const char** value) {
  return guarded([&] { need(value, "value") = get<std::string>(features, name, "String").c_str(); });
}

moka_status moka_features_get_dictionary(const moka_features* features, const char* name, moka_dictionary* dictionary) {
  return guarded([&] {
    const auto& d = get<moka::Dictionary>(features, name, "a Dictionary");
    moka_dictionary& out = need(dictionary, "dictionary");
    const View& view = view_of(features, name, [&](View& made) {
      for (const auto& [k, v] : d.strings) {
        made.strings.push_back(k.c_str());
        made.values.push_back(v);
      }
      for (const auto& [k, v] : d.ints) {
        made.ints.push_back(k);
        made.values.push_back(v);
      }
    });
    out = {view.values.size(), d.string_keys ? view.strings.data() : nullptr,
           d.string_keys ? nullptr : view.ints.data(), view.values.data()};
  });
}

moka_status moka_features_get_sequence(const moka_features* features, const char* name, moka_sequence* sequence) {
  return guarded([&] {
    const moka::FeatureValue& value = need(features, "features").values.at(need_text(name, "name"));
    moka_sequence& out = need(sequence, "sequence");
    if (const auto* ints = std::get_if<moka::Int64Sequence>(&value)) {
      out = {ints->size(), nullptr, ints->data()};
      return;
    }
    const auto& strings = get<moka::StringSequence>(features, name, "a Sequence");
    const View& view = view_of(features, name, [&](View& made) {
      for (const std::string& s : strings) made.strings.push_back(s.c_str());
    });
    out = {strings.size(), view.strings.data(), nullptr};
  });
}

}  // extern "C"
