// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "drawing/canvas.h"
#include "drawing/draw.h"
#include "drawing/preview.h"
#include "files/pixels.h"
#include "moka/difference.h"

namespace moka::drawing {
namespace {

using Rgb = std::array<int, 3>;

Rgb pixel(const Image& image, int64_t x, int64_t y) {
  const uint8_t* p = files::pixel_at(image, x, y);
  return {p[0], p[1], p[2]};
}

Rgb rgb(Color c) { return {c.r, c.g, c.b}; }

Image white(int64_t width, int64_t height) {
  Image out(width, height, PixelFormat::rgba8);
  std::fill_n(out.pixels.get(), out.row_bytes * height, uint8_t{255});
  return out;
}

ModelDescription model_with(std::map<std::string, std::string> metadata) {
  ModelDescription out;
  out.user_defined = std::move(metadata);
  return out;
}

Preview preview(const Features& outputs, const ModelDescription& model = {}, int64_t width = 100, int64_t height = 50) {
  return preview_of(outputs, model, {}, width, height);
}

TEST(Preview, BoxesOfNonMaximumSuppression) {
  const std::vector<float> coordinates{0.5F, 0.5F, 0.2F, 0.4F, 0.25F, 0.5F, 0.1F, 0.2F},
      confidence{0.1F, 0.6F, 0.9F, 0.05F};
  const Preview p = preview(
      {{"confidence", MultiArray::of(confidence, {2, 2})}, {"coordinates", MultiArray::of(coordinates, {2, 4})}},
      model_with({{"classes", "cat, dog"}}));
  ASSERT_EQ(p.boxes.size(), 2U);
  EXPECT_EQ(p.boxes[0].label, "cat");
  EXPECT_NEAR(p.boxes[0].confidence, 0.9, 1e-6);
  EXPECT_NEAR(p.boxes[1].left, 0.4, 1e-6);
  EXPECT_NEAR(p.boxes[1].bottom, 0.7, 1e-6);
  EXPECT_EQ(p.boxes[1].label, "dog");
  EXPECT_TRUE(p.maps.empty());
}

TEST(Preview, BoxesOfUltralyticsAreSuppressedWithinAClass) {
  // rows: x, y, width, height, two classes; columns: a box, nearly the same with less confidence, the same place in
  // the other class, and one below the threshold
  const std::vector<float> rows{50, 51, 50, 20, 25,   25,   25,   10,   20, 20, 20,   5,
                                10, 10, 10, 5,  0.9F, 0.8F, 0.1F, 0.2F, 0,  0,  0.7F, 0.1F};
  const ModelDescription model = model_with({{"task", "detect"}, {"names", "{0: 'person', 1: \"dog's\"}"}});
  std::vector<float> wide(6 * 8, 0.0F);
  for (size_t r = 0; r < 6; ++r) std::copy_n(&rows[r * 4], 4, &wide[r * 8]);
  const Preview p = preview({{"var_1", MultiArray::of(wide, {1, 6, 8})}}, model);
  ASSERT_EQ(p.boxes.size(), 2U);
  EXPECT_EQ(p.boxes[0].label, "person");
  EXPECT_NEAR(p.boxes[0].left, 0.4, 1e-6);
  EXPECT_NEAR(p.boxes[0].top, 0.4, 1e-6);
  EXPECT_EQ(p.boxes[1].label, "dog's");

  const std::vector<float> finished{10, 5, 60, 25, 0.5F, 1, 0, 0, 0, 0, 0, 0};
  const Preview f = preview({{"var_1", MultiArray::of(finished, {1, 2, 6})}}, model);
  ASSERT_EQ(f.boxes.size(), 1U);
  EXPECT_NEAR(f.boxes[0].right, 0.6, 1e-6);
  EXPECT_EQ(f.boxes[0].label, "dog's");
}

TEST(Preview, DetectorThatFindsNothingIsStillADetector) {
  const Preview p = preview(
      {{"coordinates", MultiArray(DataType::float32, {0, 4})}, {"confidence", MultiArray(DataType::float32, {0, 80})}});
  EXPECT_TRUE(p.empty());
  EXPECT_TRUE(p.has_detector);
}

TEST(Preview, SegmentsUseLabelsAndColorsOfTheMetadata) {
  MultiArray classes(DataType::int32, {1, 8, 8});
  classes.as<int32_t>()[9] = 2;
  const ModelDescription model =
      model_with({{"com.apple.coreml.model.preview.type", "imageSegmenter"},
                  {"com.apple.coreml.model.preview.parameters",
                   R"({"labels": ["background", "cat", "road"], "colors": ["#000000", "#FF0000", "#0080FF"]})"}});
  const Preview p = preview({{"mask", classes}}, model);
  ASSERT_EQ(p.segments.size(), 1U);
  EXPECT_EQ(p.segments[0].classes[9], 2U);
  EXPECT_EQ(p.segments[0].labels[2], "road");
  const Image drawing = draw_on_picture(p, white(800, 800), {0, 0, 800, 800});
  // Cell (1, 1) covers the pixels from 100 to 200: its color over white with an opacity of 140 of 255. The picture
  // itself begins 12 pixels from the corner.
  EXPECT_EQ(pixel(drawing, 12 + 150, 12 + 150), (Rgb{115, 185, 255}));
  EXPECT_EQ(pixel(drawing, 12 + 50, 12 + 50), (Rgb{255, 255, 255}));
}

TEST(Preview, PlanesOfScoresAreSegmentsOfTheirMaximum) {
  MultiArray scores(DataType::float32, {1, 3, 8, 8});
  scores.as<float>()[64 + 5] = 1;
  scores.as<float>()[128 + 6] = 2;
  const Preview p =
      preview({{"scores", scores}}, model_with({{"com.apple.coreml.model.preview.type", "imageSegmenter"}}));
  ASSERT_EQ(p.segments.size(), 1U);
  EXPECT_EQ(p.segments[0].classes[5], 1U);
  EXPECT_EQ(p.segments[0].classes[6], 2U);
  EXPECT_EQ(p.segments[0].classes[7], 0U);
}

TEST(Preview, KeyPointsAreMaximaOfHeatmaps) {
  MultiArray maps(DataType::float32, {2, 10, 20});
  maps.as<float>()[3 * 20 + 15] = 0.75F;
  maps.as<float>()[200 + 9 * 20] = 0.5F;
  const Preview p = preview({{"heatmap", maps}});
  ASSERT_EQ(p.points.size(), 2U);
  EXPECT_NEAR(p.points[0].x, 15.5 / 20, 1e-12);
  EXPECT_NEAR(p.points[0].y, 0.35, 1e-12);
  EXPECT_NEAR(p.points[1].y, 0.95, 1e-12);
  EXPECT_EQ(summary_of(p), "2 key points");
}

TEST(Preview, VectorsOfProbabilitiesAreClasses) {
  const std::vector<float> sure{0.1F, 0.7F, 0.2F}, scores{1, 7, 2};
  ModelDescription model;
  model.class_labels = {"a", "b", "c"};
  const Preview p = preview({{"probabilities", MultiArray::of(sure, {1, 3})}}, model);
  ASSERT_EQ(p.classes.size(), 3U);
  EXPECT_EQ(p.classes[0].label, "b");
  EXPECT_TRUE(preview({{"scores", MultiArray::of(scores, {3})}}, model).empty());
}

TEST(Preview, ThreePlanesOfColorsAreAPicture) {
  MultiArray planes(DataType::float32, {1, 3, 32, 40});
  auto values = planes.as<float>();
  for (size_t i = 0; i < 32 * 40; ++i) values[i] = 1;
  const Preview p = preview({{"restored", planes}}, {}, 0, 0);
  ASSERT_EQ(p.images.size(), 1U);
  EXPECT_EQ(p.images[0].width, 40);
  EXPECT_EQ(p.images[0].pixels.get()[0], 255);
  EXPECT_EQ(p.images[0].pixels.get()[1], 0);
  values[0] = NAN;
  EXPECT_EQ(preview({{"restored", planes}}, {}, 0, 0).maps.size(), 3U);
}

TEST(Preview, DamagedMetadataIsIgnored) {
  const ModelDescription model = model_with({{"com.apple.coreml.model.preview.type", "imageSegmenter"},
                                             {"com.apple.coreml.model.preview.parameters", "{\"colors\": [\"#xyz\", 3"},
                                             {"task", "detect"},
                                             {"names", "{999999999999: 'far', 'unfinished"}});
  const Preview p = preview(
      {{"mask", MultiArray(DataType::uint8, {8, 8})}, {"empty", MultiArray(DataType::float32, {1, 0, 0})}}, model);
  EXPECT_EQ(p.segments.size(), 1U);
}

TEST(Draw, BoxesLieInThePartOfThePictureThatTheModelSaw) {
  Preview p;
  p.boxes = {{0.25, 0.5, 0.75, 1, 3, "x", 1}};
  const Image picture = white(1000, 600);
  const Image drawing = draw_on_picture(p, picture, {200, 0, 600, 600});
  ASSERT_EQ(drawing.width, 1000);
  const Rgb color = rgb(distinct_color(3));
  EXPECT_EQ(pixel(drawing, 351, 450), color);  // 200 + 0.25 * 600
  EXPECT_EQ(pixel(drawing, 648, 450), color);
  EXPECT_EQ(pixel(drawing, 500, 598), color);
  EXPECT_EQ(pixel(drawing, 340, 450), (Rgb{255, 255, 255}));
  EXPECT_EQ(pixel(drawing, 500, 450), (Rgb{255, 255, 255}));
}

TEST(Draw, SmallPicturesAreEnlarged) {
  const Image drawing = draw_on_picture({}, white(28, 28), {0, 0, 28, 28});
  EXPECT_EQ(drawing.width, 448);
  EXPECT_EQ(draw_on_picture({}, white(1, 1), {0, 0, 1, 1}).width, 16);
}

TEST(Draw, ViewsFollowTheFit) {
  const Image wide = white(400, 200);
  const View fill = view_of(wide, 100, 100, ImageFit::scale_fill);
  EXPECT_EQ((std::array{fill.x, fill.y, fill.width, fill.height}), (std::array{0.0, 0.0, 400.0, 200.0}));
  const View fit = view_of(wide, 100, 100, ImageFit::scale_fit);
  EXPECT_EQ((std::array{fit.x, fit.y, fit.width, fit.height}), (std::array{0.0, -100.0, 400.0, 400.0}));
  const View crop = view_of(wide, 100, 100, ImageFit::center_crop);
  EXPECT_EQ((std::array{crop.x, crop.y, crop.width, crop.height}), (std::array{100.0, 0.0, 200.0, 200.0}));
}

TEST(Draw, SpectrogramShowsATone) {
  std::vector<float> samples(16384);
  for (size_t i = 0; i < samples.size(); ++i)
    samples[i] = std::sin(2 * static_cast<float>(M_PI) * 0.125F * static_cast<float>(i));
  const Image drawing = draw_on_sound({}, samples);
  // A quarter of the way from the bottom, where half the sample rate is the top.
  const Rgb loud = rgb(heat_color(1)), quiet = rgb(heat_color(0));
  const int64_t top = 12 + 26, height = drawing.height - top - 12;
  EXPECT_GT(pixel(drawing, 500, top + height * 3 / 4)[0], loud[0] - 60);
  EXPECT_LT(pixel(drawing, 500, top + height / 4)[0], quiet[0] + 30);
}

TEST(Draw, TablesPlotNumbersAndSkipGaps) {
  FunctionDescription function;
  function.outputs.resize(2);
  function.outputs[0].name = "price";
  function.outputs[1].name = "label";
  const std::vector<Features> rows{
      {{"price", 1.0}, {"label", std::string("a")}}, {{"price", static_cast<double>(NAN)}}, {{"price", 3.0}}};
  EXPECT_GT(draw_rows(rows, function).value().width, 900);
  function.outputs.erase(function.outputs.begin());
  EXPECT_FALSE(draw_rows(rows, function).has_value());
}

TEST(Draw, TextBeyondAsciiAndShapesOutsideAreHarmless) {
  Canvas canvas(20, 20, {0, 0, 0});
  canvas.text(-5, 3, "\xC3\xA9t\xC3\xA9 \xE4\xBD\xA0 \xFF", {255, 255, 255}, 12);
  canvas.rect(-1e6, -1e6, 10, 10, {255, 0, 0});
  canvas.line({{-1e9, 0}, {1e9, 19}}, 2, {0, 255, 0});
  canvas.outline(5, 5, 0, 3, 2, {255, 0, 0});
  canvas.disc(10, 10, 3, {0, 0, 255});
  EXPECT_EQ(pixel(canvas.image(), 10, 10), (Rgb{0, 0, 255}));
  EXPECT_DOUBLE_EQ(canvas.text_width("\xC3\xA9", 12), canvas.text_width("?", 12));
}

TEST(Sheet, PlanesHaveOneScaleAndNotFiniteElementsAreRed) {
  std::vector<float> values(2 * 8 * 8, 0.0F);
  values[0] = NAN;
  values[1] = INFINITY;
  values[8 * 8] = 4;
  const MultiArray array = MultiArray::of(values, {1, 2, 8, 8});
  const ArrayDrawing sheet = draw_array(array, facts_of(array)).value();
  EXPECT_EQ(sheet.planes, 2);
  EXPECT_EQ(sheet.shown, 2);
  // Two planes of 8 x 8, enlarged 14 times, below their numbers.
  const auto count = [&](Rgb color) {
    size_t n = 0;
    for (int64_t y = 0; y < sheet.image.height; ++y)
      for (int64_t x = 0; x < sheet.image.width; ++x) n += pixel(sheet.image, x, y) == color;
    return n;
  };
  EXPECT_EQ(count({255, 40, 40}), 2 * 14 * 14);
  EXPECT_EQ(count(rgb(heat_color(1))), 14 * 14);
  EXPECT_EQ(count(rgb(heat_color(0))), (2 * 64 - 3) * 14 * 14);
}

TEST(Sheet, LongTablesStaySmall) {
  const MultiArray array(DataType::float32, {1, 5000, 10});
  const ArrayDrawing sheet = draw_array(array, facts_of(array)).value();
  EXPECT_EQ(sheet.shown, 1);
  EXPECT_LE(sheet.image.height, 2000);
  EXPECT_GE(sheet.image.width, 10);
}

TEST(Sheet, SmallArraysHaveNone) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1024}, {32, 2}, {7, 9}, {3, 0, 8}}) {
    const MultiArray array(DataType::float32, shape);
    EXPECT_FALSE(draw_array(array, facts_of(array)).has_value());
  }
}

TEST(DrawOutputs, BoxesInThePictureThatTheRegionWasCutFrom) {
  FunctionDescription function;
  FeatureDescription input;
  input.name = "image";
  input.type = FeatureType::image;
  function.inputs.push_back(input);
  const std::vector<float> coordinates{0.5F, 0.5F, 0.5F, 0.5F}, confidence{1};
  const Features inputs{{"image", white(100, 100)}},
      outputs{{"confidence", MultiArray::of(confidence, {1, 1})}, {"coordinates", MultiArray::of(coordinates, {1, 4})}};
  const Image picture = white(1000, 800);
  // The model saw the right half: its box from 25 % to 75 % is x 625 to 875 and y 200 to 600.
  const auto drawing = draw_outputs(model_with({{"classes", "cat"}}), function, inputs, outputs, &picture,
                                    ImageFit::scale_fill, {0.5, 0, 0.5, 1});
  ASSERT_TRUE(drawing);
  EXPECT_EQ(drawing->what, "1 box");
  EXPECT_EQ(drawing->found, std::vector<std::string>{"cat 100.0%"});
  EXPECT_EQ(drawing->image.format, PixelFormat::rgba8);
  EXPECT_EQ(drawing->image.width, 1000);
  EXPECT_EQ(pixel(drawing->image, 626, 400), rgb(distinct_color(0)));
  EXPECT_EQ(pixel(drawing->image, 873, 400), rgb(distinct_color(0)));
  EXPECT_EQ(pixel(drawing->image, 750, 599), rgb(distinct_color(0)));
  EXPECT_EQ(pixel(drawing->image, 750, 400), (Rgb{255, 255, 255}));
  EXPECT_EQ(pixel(picture, 626, 400), (Rgb{255, 255, 255}));  // the picture itself stays as it is
  EXPECT_FALSE(draw_outputs({}, function, inputs, {{"y", std::string("text")}}).has_value());
}

TEST(DrawPlot, LinesAndDiscsLieWhereTheAxesSay) {
  Plot plot;
  plot.right = 10;
  plot.top = 2;
  plot.series = {{"line", {0, 255, 0}, {{0, 1}, {10, 1}}, true, 4}, {"", {255, 0, 0}, {{5, 2}}, false, 6}};
  const Image image = draw_plot(plot);
  EXPECT_EQ(image.width, 960);
  EXPECT_EQ(image.height, 540);
  EXPECT_EQ(pixel(image, 200, 266), (Rgb{0, 255, 0}));  // half of the way from 484 to 48
  EXPECT_EQ(pixel(image, 508, 48), (Rgb{255, 0, 0}));   // half of the way from 80 to 936
}

}  // namespace
}  // namespace moka::drawing
