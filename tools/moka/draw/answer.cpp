// SPDX-License-Identifier: Apache-2.0
#include "draw/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace moka::cli {
namespace {

/// The user's own file of the image input, which may be larger than the model's image.
std::optional<Image> file_of(const FunctionDescription& function, const InputOptions& options) {
  for (const std::string& argument : options.inputs) {
    const size_t equals = argument.find("=@");
    if (equals == std::string::npos) continue;
    const auto input = std::find_if(function.inputs.begin(), function.inputs.end(),
                                    [&](const auto& i) { return i.name == argument.substr(0, equals); });
    if (input == function.inputs.end() || input->type != FeatureType::image) continue;
    const FileReference file = parse_reference(std::string_view(argument).substr(equals + 2));
    if (!is_picture(file.extension)) return std::nullopt;
    return reading([&] { return read_image(file.path); });
  }
  return std::nullopt;
}

}  // namespace

std::vector<NumberedDrawing> drawings_of(const Model& model, const InputOptions& options, const Inputs& inputs,
                                         const std::vector<Features>& outputs) {
  const FunctionDescription& function = model.function();
  const bool pictures = std::any_of(function.inputs.begin(), function.inputs.end(),
                                    [](const auto& i) { return i.type == FeatureType::image; });
  if (inputs.batch && !pictures) {
    std::optional<Image> plot = draw_rows(outputs, function);
    if (!plot) throw UsageError("--draw: the outputs of the table have no numbers to plot");
    return {{{std::move(*plot), fmt::format("plots of {} rows", outputs.size()), {}}, 0}};
  }
  std::vector<NumberedDrawing> out;
  for (size_t row = 0; row < outputs.size(); ++row) {
    const std::optional<Image> file = inputs.batch ? std::nullopt : file_of(function, options);
    auto drawing = draw_outputs(model.description(), function, inputs.rows[row], outputs[row], file ? &*file : nullptr,
                                image_fit(options.fit));
    if (!drawing)
      throw UsageError(
          "--draw: no output can be drawn (classes, boxes, key points, masks, maps and images can; so can numbers of a "
          "batch)");
    out.push_back({std::move(*drawing), inputs.batch ? row + 1 : 0});
  }
  return out;
}

std::vector<std::string> write_drawings(const std::string& path, const std::vector<NumberedDrawing>& drawings,
                                        const Outputs& to) {
  std::vector<std::string> out;
  for (const auto& [drawing, row] : drawings) {
    std::filesystem::path file(path);
    if (row > 0) file.replace_filename(fmt::format("{}-{}{}", file.stem().string(), row, file.extension().string()));
    to.write(file, FileKind::picture, encode_png(drawing.image));
    out.push_back(file.string());
  }
  return out;
}

}  // namespace moka::cli
