// SPDX-License-Identifier: Apache-2.0
#include "view/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "answers.h"
#include "check/diff.h"
#include "input.h"
#include "io/file.h"
#include "moka/drawing.h"
#include "temporary_folder.h"
#include "view/base64.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMostCounted = int64_t{1} << 16;
constexpr int64_t kMostRandom = int64_t{1} << 28;
/// The longer side of a picture on the page.
constexpr int64_t kLongestSide = 1600;

/// A file with bytes from the page, which exists as long as this object.
class UploadedFile {
 public:
  UploadedFile(const std::string& name, std::span<const std::byte> bytes)
      : path_(folder_.path() / safe_file_name(fs::path(name).filename().string())) {
    io::write_file(path_, bytes);
  }
  const fs::path& path() const { return path_; }

 private:
  TemporaryFolder folder_{"view"};
  fs::path path_;
};

struct Shown {
  Json operator()(std::monostate) const { return {{"form", "text"}, {"text", ""}}; }
  Json operator()(int64_t v) const { return {{"form", "number"}, {"value", v}}; }
  Json operator()(double v) const { return {{"form", "number"}, {"value", v}}; }
  Json operator()(const std::string& v) const { return {{"form", "text"}, {"text", v}}; }
  Json operator()(const StringSequence& v) const { return {{"form", "list"}, {"items", v}}; }
  Json operator()(const Int64Sequence& v) const { return {{"form", "list"}, {"items", v}}; }
  Json operator()(const Dictionary& v) const { return {{"form", "classes"}, {"entries", ranked(v)}}; }
  Json operator()(const Image& v) const {
    Json json = png_json(converted(v, PixelFormat::rgba8));
    json["form"] = "image";
    return json;
  }
  Json operator()(const PixelBuffer& v) const { return (*this)(image_of(v, PixelFormat::rgba8)); }
  Json operator()(const MultiArray& v) const {
    const ArrayFacts facts = facts_of(v);
    Json json = to_json(facts);
    json["form"] = "array";
    if (const auto maps = draw_array(v, facts)) {
      json["maps"] = png_json(maps->image);
      json["maps"]["planes"] = maps->planes;
      json["maps"]["shown"] = maps->shown;
      return json;
    }
    std::vector<float> first(static_cast<size_t>(std::min(v.count(), kMostCounted)));
    for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(v.at(static_cast<int64_t>(i)));
    json["data"] = base64_of(std::as_bytes(std::span(first)));
    return json;
  }
};

bool takes_image(const FunctionDescription& function, const std::string& name) {
  return std::any_of(function.inputs.begin(), function.inputs.end(),
                     [&](const auto& i) { return i.name == name && i.type == FeatureType::image; });
}

/// The picture as the page shows it.
Image shrunk(const Image& picture) {
  const int64_t side = std::max(picture.width, picture.height);
  if (side <= kLongestSide) return picture;
  const auto part = [&](int64_t length) { return std::max<int64_t>(1, length * kLongestSide / side); };
  return fit_image(picture, part(picture.width), part(picture.height));
}

}  // namespace

namespace {

/// Random values of another size than the default.
FeatureValue random_array(const FunctionDescription& function, const std::string& name, const Json& shape) {
  FunctionDescription one;
  for (const FeatureDescription& f : function.inputs)
    if (f.name == name && f.type == FeatureType::multi_array) one.inputs.push_back(f);
  if (one.inputs.empty()) throw UsageError(fmt::format("input '{}': only arrays have a shape", name));
  one.inputs[0].array.shape = shape.get<std::vector<int64_t>>();
  double count = 1;
  for (const int64_t d : one.inputs[0].array.shape) count *= static_cast<double>(std::max<int64_t>(d, 0));
  if (count < 1 || count > kMostRandom)
    throw UsageError(fmt::format("input '{}': expected a shape of 1 to {} elements", name, kMostRandom));
  return random_inputs(one, InputOptions{}.seed).at(name);
}

}  // namespace

GivenInputs inputs_of(const Model& model, const Json& inputs) {
  if (!inputs.is_object()) throw UsageError("inputs: expected an object by name");
  GivenInputs out;
  InputOptions options;
  options.pad = true;
  options.texts_name_files = false;
  std::vector<std::unique_ptr<UploadedFile>> files;
  for (const auto& [name, value] : inputs.items()) {
    if (value.contains("random")) {
      options.inputs.push_back(name + "=random");
    } else if (value.contains("file")) {
      const auto bytes = bytes_of_base64(value.at("file").get<std::string>());
      if (!bytes) throw UsageError(fmt::format("input '{}': the file is not base64", name));
      files.push_back(std::make_unique<UploadedFile>(value.value("name", "file"), *bytes));
      options.inputs.push_back((name.empty() ? "@" : name + "=@") + files.back()->path().string());
      const std::string extension = parse_reference(files.back()->path().string()).extension;
      if (takes_image(model.function(), name) && extension != "npy" && extension != "npz")
        out.picture = shrunk(reading([&] { return decode_image(*bytes, name); }));
    } else {
      options.texts.emplace_back(name, value.at("text").get<std::string>());
    }
  }
  Inputs read = read_inputs(model, options);
  if (read.rows.empty()) throw UsageError("the file has no rows");
  if (read.rows.size() > 1) read.notes.push_back(fmt::format("Using the first of {} rows", read.rows.size()));
  for (std::string& note : read.notes) {
    for (const auto& file : files)
      if (const size_t at = note.find(file->path().string()); at != std::string::npos)
        note.replace(at, file->path().string().size(), file->path().filename().string());
    out.notes.push_back(note);
  }
  out.features = std::move(read.rows[0]);
  for (const auto& [name, value] : inputs.items())
    if (value.contains("shape")) out.features[name] = random_array(model.function(), name, value["shape"]);
  return out;
}

Json answer_of(const Model& model, const Json& inputs) {
  const GivenInputs given = inputs_of(model, inputs);
  std::optional<State> state;
  PredictionOptions options;
  if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
  const auto start = std::chrono::steady_clock::now();
  const Features outputs = model.predict(given.features, options);
  Json out{{"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()},
           {"notes", given.notes},
           {"outputs", Json::array()}};
  if (const auto drawing = draw_outputs(model.description(), model.function(), given.features, outputs,
                                        given.picture ? &*given.picture : nullptr)) {
    out["drawing"] = png_json(drawing->image);
    out["drawing"]["what"] = drawing->what;
    out["drawing"]["found"] = drawing->found;
  }
  for (const auto& [name, value] : outputs) {
    Json shown = shown_value(value);
    shown["name"] = name;
    out["outputs"].push_back(std::move(shown));
  }
  return out;
}

Json shown_value(const FeatureValue& value) { return std::visit(Shown{}, value); }

Json png_json(const Image& image) {
  return {{"width", image.width}, {"height", image.height}, {"png", base64_of(encode_png(image))}};
}

}  // namespace moka::cli
