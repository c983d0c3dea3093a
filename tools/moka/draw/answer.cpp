// SPDX-License-Identifier: Apache-2.0
#include "draw/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "draw/panels.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// Samples of a sound that are worth a spectrogram.
constexpr int64_t kLeastSamples = 1024;

/// The picture or the sound that the outputs are drawn onto.
struct Ground {
  int64_t image_width = 0, image_height = 0;  ///< of the model's image; 0: none
  io::Picture picture;
  View view;
  std::vector<float> samples;
};

/// The picture or the sound among the inputs, as the model gets it.
Ground ground_of(const FunctionDescription& function, const Features& inputs) {
  Ground out;
  for (const FeatureDescription& input : function.inputs) {
    const FeatureValue* value = inputs.find(input.name);
    if (!value) continue;
    if (const auto* image = std::get_if<Image>(value)) {
      out.image_width = image->width;
      out.image_height = image->height;
      out.picture = picture_of(*image);
      out.view = {0, 0, static_cast<double>(image->width), static_cast<double>(image->height)};
      return out;
    }
    const auto* array = std::get_if<MultiArray>(value);
    if (!array || !out.samples.empty() || array->count() < kLeastSamples) continue;
    const auto& shape = array->shape();
    if (*std::max_element(shape.begin(), shape.end()) != array->count()) continue;
    for (int64_t i = 0; i < array->count(); ++i) out.samples.push_back(static_cast<float>(array->at(i)));
  }
  return out;
}

/// Replaces the model's image by the user's own file, which may be larger.
void use_file(Ground& ground, const FunctionDescription& function, const InputOptions& options) {
  for (const std::string& argument : options.inputs) {
    const size_t equals = argument.find("=@");
    if (equals == std::string::npos) continue;
    const auto input = std::find_if(function.inputs.begin(), function.inputs.end(),
                                    [&](const auto& i) { return i.name == argument.substr(0, equals); });
    if (input == function.inputs.end() || input->type != FeatureType::image) continue;
    const FileReference file = parse_reference(std::string_view(argument).substr(equals + 2));
    if (file.extension == "npy" || file.extension == "npz") return;
    ground.picture = io::read_picture(file.path);
    ground.view = view_of(ground.picture, ground.image_width, ground.image_height, io::parse_fit(options.fit));
    return;
  }
}

std::optional<Drawing> drawing_on(const Ground& ground, const ModelDescription& model,
                                  const FunctionDescription& function, const Features& outputs) {
  const Preview preview = preview_of(outputs, model, function, ground.image_width, ground.image_height);
  const bool detects_nothing = preview.empty() && ground.image_width > 0 && preview.has_detector;
  if (preview.empty() && !detects_nothing) return std::nullopt;
  Drawing out;
  out.what = detects_nothing ? "no boxes" : summary_of(preview);
  for (const Box& box : preview.boxes) out.found.push_back(box.label + " " + format_percent(box.confidence));
  for (const ClassScore& c : preview.classes) out.found.push_back(c.label + " " + format_percent(c.probability));
  out.picture = ground.image_width > 0    ? draw_on_picture(preview, ground.picture, ground.view)
                : !ground.samples.empty() ? draw_on_sound(preview, ground.samples)
                                          : draw_alone(preview);
  return out;
}

Drawing required(std::optional<Drawing> drawing) {
  if (drawing) return std::move(*drawing);
  throw UsageError(
      "--draw: no output can be drawn (classes, boxes, key points, masks, maps and images can; so can numbers of a "
      "batch)");
}

}  // namespace

View view_of(const io::Picture& picture, int64_t width, int64_t height, io::Fit fit) {
  const io::Placement p =
      io::place(picture.width, picture.height, static_cast<size_t>(width), static_cast<size_t>(height), fit);
  const double x = p.source_width / static_cast<double>(p.width), y = p.source_height / static_cast<double>(p.height);
  return {p.source_x - static_cast<double>(p.x) * x, p.source_y - static_cast<double>(p.y) * y,
          static_cast<double>(width) * x, static_cast<double>(height) * y};
}

std::optional<Drawing> drawing_of(const ModelDescription& model, const FunctionDescription& function,
                                  const Features& inputs, const Features& outputs, const io::Picture* picture,
                                  io::Fit fit) {
  Ground ground = ground_of(function, inputs);
  if (picture && ground.image_width > 0) {
    ground.picture = *picture;
    ground.view = view_of(*picture, ground.image_width, ground.image_height, fit);
  }
  return drawing_on(ground, model, function, outputs);
}

io::Picture drawn(const ModelDescription& model, const FunctionDescription& function, const Features& inputs,
                  const Features& outputs, const io::Picture* picture, io::Fit fit) {
  return required(drawing_of(model, function, inputs, outputs, picture, fit)).picture;
}

std::vector<Drawing> drawings_of(const Model& model, const InputOptions& options, const Inputs& inputs,
                                 const std::vector<Features>& outputs) {
  const FunctionDescription& function = model.function();
  const bool pictures = std::any_of(function.inputs.begin(), function.inputs.end(),
                                    [](const auto& i) { return i.type == FeatureType::image; });
  if (inputs.batch && !pictures) {
    io::Picture plot = draw_table(outputs, function);
    if (plot.width == 0) throw UsageError("--draw: the outputs of the table have no numbers to plot");
    return {{std::move(plot), fmt::format("plots of {} rows", outputs.size()), {}, 0}};
  }
  std::vector<Drawing> out;
  for (size_t row = 0; row < outputs.size(); ++row) {
    Ground ground = ground_of(function, inputs.rows[row]);
    if (ground.image_width > 0 && !inputs.batch) use_file(ground, function, options);
    out.push_back(required(drawing_on(ground, model.description(), function, outputs[row])));
    if (inputs.batch) out.back().row = row + 1;
  }
  return out;
}

std::vector<std::string> write_drawings(const std::string& path, const std::vector<Drawing>& drawings,
                                        const Outputs& to) {
  std::vector<std::string> out;
  for (const Drawing& drawing : drawings) {
    std::filesystem::path file(path);
    if (drawing.row > 0)
      file.replace_filename(fmt::format("{}-{}{}", file.stem().string(), drawing.row, file.extension().string()));
    to.write(file, FileKind::picture, io::encode_png(drawing.picture));
    out.push_back(file.string());
  }
  return out;
}

}  // namespace moka::cli
