// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Operations that move data, and tensors that share memory with parts of others.
namespace moka::devices_test {
namespace {

using namespace ir;

Value* conv(Graph& g, Value* x, int64_t in, int64_t out) {
  return g.op("conv", {{"x", x}, {"weight", g.random({out, in, 1, 1}, -0.3f, 0.3f)}});
}

Tensor flags(std::vector<uint8_t> v) {
  Tensor t = *Tensor::zeros(DType::boolean, {static_cast<int64_t>(v.size())});
  std::copy(v.begin(), v.end(), static_cast<uint8_t*>(t.mutable_data()));
  return t;
}

int placed(const Run& r) {
  return static_cast<int>(std::count_if(r.plan->sequence.steps.begin(), r.plan->sequence.steps.end(),
                                        [](const plan::Step& s) { return std::holds_alternative<plan::Placed>(s); }));
}

TEST(CpuJoin, ConvolutionsWriteWhereTheyAreJoined) {
  for (int64_t last : {16, 5}) {
    Graph g;
    Value* x = conv(g, g.input({1, 3, 7, 9}), 3, 32);
    Value* a = conv(g, x, 32, 16);
    Value* b = conv(g, a, 16, 64);
    Value* c = conv(g, x, 32, last);
    Value* inner = g.op("concat", {{"values", std::vector<Value*>{a, b}}, {"axis", 1}});
    Value* outer = g.op("concat", {{"values", std::vector<Value*>{x, inner, c}}, {"axis", -3}});
    const auto r = expect_same(g, {conv(g, outer, 112 + last, 32)});
    EXPECT_EQ(placed(r), 2);
  }
}

TEST(CpuJoin, AValueIsInOnePlace) {
  Graph g;
  Value* x = conv(g, g.input({1, 16, 7, 9}), 16, 32);
  Value* a = conv(g, x, 32, 32);
  Value* twice = g.op("concat", {{"values", std::vector<Value*>{a, a, x}}, {"axis", 1}});
  Value* again = g.op("concat", {{"values", std::vector<Value*>{x, a}}, {"axis", 1}});
  expect_same(g, {conv(g, twice, 96, 32), conv(g, again, 64, 32), g.op("relu", {{"x", a}})});
}

/// A sum in the memory of the whole would change the part, which each row reads.
TEST(CpuJoin, AWholeIsNotReplacedWhileAPartIsRead) {
  Graph g;
  Value* part = g.op("exp", {{"x", g.input({1, 4})}});
  Value* rest = g.op("exp", {{"x", g.input({3, 4})}});
  Value* whole = g.op("concat", {{"values", std::vector<Value*>{part, rest}}, {"axis", 0}});
  const auto r = expect_same(g, {g.op("sub", {{"x", whole}, {"y", part}})});
  EXPECT_EQ(placed(r), 1);
}

TEST(CpuJoin, RowMajorOfEveryType) {
  for (DType t : {DType::fp32, DType::int32, DType::int8, DType::boolean})
    for (int axis : {0, 1, 2}) {
      SCOPED_TRACE(cat(t, " ", axis));
      Graph g;
      Value* x = g.input({2, 3, 4}, 0, 9);
      Value* y = g.input({2, 3, 4}, 0, 9);
      const std::string to(to_string(t));
      Value* a = t == DType::fp32 ? x : g.op("cast", {{"x", x}, {"dtype", to == "boolean" ? "bool" : to}});
      Value* b = t == DType::fp32 ? y : g.op("cast", {{"x", y}, {"dtype", to == "boolean" ? "bool" : to}});
      Value* all = g.op("concat", {{"values", std::vector<Value*>{a, b, a}}, {"axis", axis}});
      expect_same(g, {all}, 0, true);
    }
}

/// Joins of parts that do not fill their last block stay blocked, and so do splits inside of a block.
TEST(CpuJoin, ChannelsOfSeveralBlocks) {
  for (const std::vector<int64_t>& parts :
       std::vector<std::vector<int64_t>>{{8, 8}, {20, 24}, {1, 2, 3, 4, 5}, {33, 3}, {16, 5, 16}, {58, 58}, {40}})
    for (int64_t images : {1, 2}) {
      int64_t all = 0;
      for (int64_t p : parts) all += p;
      SCOPED_TRACE(cat(parts.size(), " parts of ", all, ", ", images, " images"));
      Graph g;
      Value* x = conv(g, g.input({images, 3, 7, 9}), 3, 48);
      std::vector<Value*> made;
      for (int64_t p : parts) made.push_back(conv(g, x, 48, p));
      Value* joined = g.op("concat", {{"values", made}, {"axis", 1}});
      const auto cut =
          g.ops("split", {{"x", g.op("relu", {{"x", joined}})}, {"split_sizes", Tensor::i32(parts)}, {"axis", 1}});
      std::vector<Value*> read{conv(g, joined, all, 32)};
      for (size_t i = 0; i < parts.size(); i++) read.push_back(conv(g, cut[i], parts[i], 16));
      const auto r = expect_same(g, read);
      // Without AVX2 some of these convolutions have row-major results.
      if (devices::cpu::isa() != devices::cpu::Isa::base && std::any_of(parts.begin(), parts.end() - 1, [](int64_t n) {
            return n % devices::cpu::channel_block() != 0;
          })) {
        EXPECT_TRUE(r.has("cpu.concat.mixed")) << r.kernels;
        EXPECT_TRUE(r.has("cpu.split.mixed")) << r.kernels;
      }
    }
}

TEST(CpuJoin, ReshapedNextAreRowMajor) {
  Graph g;
  Value* x = g.input({1, 3, 7, 9});
  Value* joined = g.op("concat", {{"values", std::vector<Value*>{conv(g, x, 3, 20), conv(g, x, 3, 24)}}, {"axis", 1}});
  const auto r =
      expect_same(g, {g.op("exp", {{"x", g.op("reshape", {{"x", joined}, {"shape", Tensor::i32({44, 63})}})}})});
  EXPECT_FALSE(r.has("mixed")) << r.kernels;
}

TEST(CpuCut, PartsNeedNoCopy) {
  Graph g;
  Value* x = conv(g, g.input({1, 3, 7, 9}), 3, 64);
  const auto parts = g.ops("split", {{"x", x}, {"split_sizes", Tensor::i32({32, 16, 16})}, {"axis", 1}});
  Value* rest =
      g.op("slice_by_size", {{"x", x}, {"begin", Tensor::i32({0, 16, 0, 0})}, {"size", Tensor::i32({1, 48, 7, -1})}});
  Value* sum = g.op("add", {{"x", parts[1]}, {"y", parts[2]}});
  Value* joined = g.op("concat", {{"values", std::vector<Value*>{sum, parts[0], conv(g, rest, 48, 16)}}, {"axis", 1}});
  const auto r = expect_same(g, {conv(g, joined, 64, 16)});
  EXPECT_EQ(placed(r), 2);
}

/// The last use of a part neither ends the whole's lifetime nor moves its other parts.
TEST(CpuCut, InPlaceWithinParts) {
  Graph g;
  Value* x = g.op("exp", {{"x", g.input({1, 4, 6})}});
  const auto parts = g.ops("split", {{"x", x}, {"num_splits", 2}, {"axis", 1}});
  Value* a = g.op("sqrt", {{"x", parts[1]}});
  Value* b = g.op("tanh", {{"x", a}});
  Value* c = g.op("sub", {{"x", b}, {"y", parts[0]}});
  Value* d = g.op(
      "tanh",
      {{"x", g.op("slice_by_index", {{"x", x}, {"begin", Tensor::i32({0, 1, 0})}, {"end", Tensor::i32({1, 3, 6})}})}});
  expect_same(g, {g.op("add", {{"x", c}, {"y", d}})});
}

TEST(CpuCut, SlicesOfAllKinds) {
  struct Slice {
    std::vector<int64_t> begin, end, stride;
  };
  const Slice all[] = {
      {.begin = {0, 1, 0}, .end = {1, 3, 5}, .stride = {1, 1, 1}},
      {.begin = {0, 0, 1}, .end = {2, 4, 4}, .stride = {1, 1, 2}},
      {.begin = {1, -1, 4}, .end = {2, -5, -6}, .stride = {1, -1, -2}},
      {.begin = {0, 2, 1}, .end = {1, 3, 4}, .stride = {1, 1, 1}},
      {.begin = {1, 0, 0}, .end = {2, 4, 5}, .stride = {1, 1, 1}},
      {.begin = {-1, 3, 2}, .end = {2, 4, 3}, .stride = {1, 3, 1}},
  };
  for (const Slice& slice : all) {
    SCOPED_TRACE(cat("from ", Shape(slice.begin), " to ", Shape(slice.end)));
    Graph g;
    Value* x = g.input({2, 4, 5});
    Value* y = g.op("slice_by_index", {{"x", x},
                                       {"begin", Tensor::i32(slice.begin)},
                                       {"end", Tensor::i32(slice.end)},
                                       {"stride", Tensor::i32(slice.stride)}});
    expect_same(g, {y, g.op("exp", {{"x", y}})}, 1e-6);
  }
  Graph g;
  Value* x = g.input({2, 4, 5});
  Value* y = g.op("slice_by_index", {{"x", x},
                                     {"begin", Tensor::i32({1, 2, 0})},
                                     {"end", Tensor::i32({0, 0, 0})},
                                     {"end_mask", flags({0, 0, 1})},
                                     {"squeeze_mask", flags({1, 1, 0})}});
  expect_same(g, {y});
}

TEST(CpuSample, MarginsOfImages) {
  for (const char* mode : {"constant", "reflect", "replicate"})
    for (int64_t ch : {3, 16, 33})
      for (float value : {0.0f, 2.5f}) {
        SCOPED_TRACE(cat(mode, " ", ch, " ", value));
        Graph g;
        Value* x = conv(g, g.input({2, 5, 7, 6}), 5, ch);
        Value* y = g.op("pad", {{"x", x}, {"pad", Tensor::i32({3, 1, 0, 4})}, {"mode", mode}, {"constant_val", value}});
        Value* z = g.op(
            "pad", {{"x", y}, {"pad", Tensor::i32({0, 0, 0, 0, 9, 0, 2, 2})}, {"mode", mode}, {"constant_val", value}});
        expect_same(g, {conv(g, y, ch, 16), z});
      }
}

TEST(CpuSample, ResizesImages) {
  for (int64_t ch : {3, 16, 33}) {
    Graph g;
    Value* x = conv(g, g.input({2, 5, 7, 6}), 5, ch);
    std::vector<Value*> all;
    auto add = [&](Value* y) { all.push_back(conv(g, y, ch, 7)); };
    add(g.op("upsample_nearest_neighbor", {{"x", x}, {"scale_factor_height", 2}, {"scale_factor_width", 3}}));
    add(g.op("resize_nearest_neighbor", {{"x", x}, {"target_size_height", 5}, {"target_size_width", 11}}));
    for (bool align : {false, true})
      add(g.op("upsample_bilinear",
               {{"x", x}, {"scale_factor_height", 2}, {"scale_factor_width", 3}, {"align_corners", align}}));
    for (const char* mode : {"DEFAULT", "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "OFFSET_CORNERS", "UNALIGN_CORNERS"}) {
      add(g.op("resize_bilinear",
               {{"x", x}, {"target_size_height", 4}, {"target_size_width", 13}, {"sampling_mode", mode}}));
      for (const char* way : {"LINEAR", "NEAREST_NEIGHBOR"})
        add(g.op("resize", {{"x", x},
                            {"shape", Tensor::i32({0, 9})},
                            {"resized_dims", Tensor::scalar_i64(DType::uint32, 2)},
                            {"interpolation_mode", way},
                            {"sampling_mode", mode}}));
    }
    expect_same(g, all);
  }
}

/// Outputs of the program are row-major.
TEST(CpuSample, ResizesImagesThatAreReturned) {
  for (int64_t ch : {16, 21, 33})
    for (int64_t width : {5, 16, 171}) {
      SCOPED_TRACE(cat(ch, " ", width));
      Graph g;
      Value* x = conv(g, g.input({2, 5, 7, width}), 5, ch);
      Value* y = g.op("upsample_bilinear", {{"x", x}, {"scale_factor_height", 2}, {"scale_factor_width", 3}});
      Value* z = g.op("resize_bilinear",
                      {{"x", x}, {"target_size_height", 11}, {"target_size_width", static_cast<int>(3 * width)}});
      const auto r = expect_same(g, {y, z});
      EXPECT_EQ(r.kernels.find("convert", r.kernels.find("cpu.sample")), std::string::npos) << r.kernels;
    }
}

/// Tiles of rows of one plane, from blocks and from rows.
TEST(CpuSample, ResizesToManyRows) {
  for (int height : {63, 64, 65, 200})
    for (bool blocked : {false, true}) {
      SCOPED_TRACE(cat(height, " rows, blocked ", blocked));
      Graph g;
      Value* x = g.input({2, 21, 9, 7});
      if (blocked) x = conv(g, x, 21, 21);
      std::vector<Value*> all;
      for (const char* mode : {"DEFAULT", "STRICT_ALIGN_CORNERS", "UNALIGN_CORNERS", "OFFSET_CORNERS"})
        all.push_back(
            g.op("resize_bilinear",
                 {{"x", x}, {"target_size_height", height}, {"target_size_width", 31}, {"sampling_mode", mode}}));
      expect_same(g, all);
    }
}

/// Some modes move pixels even if the size stays the same, but only along resized dimensions.
TEST(CpuSample, ResizesOtherDimensionsElsewhere) {
  for (int64_t resized : {0, 1, 3})
    for (const char* mode : {"OFFSET_CORNERS", "UNALIGN_CORNERS", "DEFAULT"}) {
      SCOPED_TRACE(cat(resized, " ", mode));
      Graph g;
      expect_same(g,
                  {g.op("resize", {{"x", g.input({2, 3, 6, 5})},
                                   {"shape", Tensor::i32({3, 6, 5})},
                                   {"resized_dims", Tensor::scalar_i64(DType::uint32, resized)},
                                   {"sampling_mode", mode}})},
                  1e-6, true);
    }
}

/// Infinities with weight 0 do not affect a pixel.
TEST(CpuSample, Infinities) {
  const float inf = std::numeric_limits<float>::infinity();
  Graph g;
  Value* x = g.input_of(Tensor::f32({1, 1, 3, 3}, std::vector<float>{0, 1, inf, -inf, 2, 3, 4, 5, 6}));
  expect_same(g, {g.op("upsample_bilinear", {{"x", x}, {"scale_factor_height", 2}, {"scale_factor_width", 2}}),
                  g.op("resize", {{"x", x},
                                  {"shape", Tensor::i32({5, 5})},
                                  {"resized_dims", Tensor::scalar_i64(DType::uint32, 2)},
                                  {"sampling_mode", "ALIGN_CORNERS"}})});
  for (int64_t ch : {1, 16, 33}) {
    SCOPED_TRACE(ch);
    Graph h;
    Tensor image = h.random({1, ch, 3, 4});
    for (int64_t i = 1; i < image.count(); i += 3) image.mut<float>()[static_cast<size_t>(i)] = i % 2 == 0 ? inf : -inf;
    Value* y = h.op("resize_bilinear", {{"x", h.input_of(image)},
                                        {"target_size_height", 3},
                                        {"target_size_width", 4},
                                        {"sampling_mode", "ALIGN_CORNERS"}});
    const auto r = expect_same(h, {y, h.op("upsample_bilinear", {{"x", y}, {"align_corners", true}})});
    for (const Tensor& t : r.outputs) EXPECT_TRUE(t == image);
  }
}

TEST(CpuJoin, StacksAreJoinedAlongANewAxis) {
  for (int axis : {0, 1, 2, -1}) {
    SCOPED_TRACE(axis);
    Graph g;
    Value* x = g.input({3, 4});
    Value* y = g.op("relu", {{"x", x}});
    expect_same(g, {g.op("stack", {{"values", std::vector<Value*>{x, y, x}}, {"axis", axis}})}, 0);
  }
}

/// Pairs and triples of numbers, as rotary positions and complex numbers have them, in every size of an element.
TEST(CpuJoin, StacksOfSingleElementsAreInterleaved) {
  for (const char* to : {"fp32", "fp16", "int32", "int8", "bool"})
    for (int64_t rows : {5, 1023, 2051})
      for (size_t parts : {2, 3}) {
        SCOPED_TRACE(cat(to, ", ", rows, " rows, ", parts, " parts"));
        Graph g;
        Value* x = g.input({1, rows});
        Value* y = g.op("sub", {{"x", 0.5f}, {"y", x}});
        std::vector<Value*> all;
        for (size_t i = 0; i < parts; i++) all.push_back(g.op("cast", {{"x", i % 2 == 0 ? x : y}, {"dtype", to}}));
        std::vector<Value*> columns;
        for (Value* v : all) columns.push_back(g.op("expand_dims", {{"x", v}, {"axes", Tensor::i32({2})}}));
        expect_same(
            g, {g.op("stack", {{"values", all}, {"axis", -1}}), g.op("concat", {{"values", columns}, {"axis", 2}})}, 0,
            true);
      }
}

TEST(CpuSlice, Reverses) {
  Graph g;
  Value* x = g.input({3, 4, 1, 5});
  Value* all = g.op("reverse", {{"x", x}});
  std::vector<Value*> out = {all};
  for (const Ints& axes : {Ints{0}, Ints{-1}, Ints{1, 3}, Ints{2}})
    out.push_back(g.op("reverse", {{"x", x}, {"axes", axes}}));
  Value* blocks = conv(g, g.input({1, 3, 5, 4}), 3, 32);
  out.push_back(g.op("reverse", {{"x", blocks}, {"axes", Ints{1}}}));
  expect_same(g, out);
}

TEST(CpuPermute, EveryOrderOfAxes) {
  for (const Shape& shape : {Shape{3, 17, 5, 33}, Shape{1, 16, 1, 70}, Shape{2, 1, 40, 16}, Shape{1, 1, 1, 1}}) {
    std::vector<int64_t> order = {0, 1, 2, 3};
    do {
      SCOPED_TRACE(cat(shape, " ", order[0], order[1], order[2], order[3]));
      Graph g;
      expect_same(g, {g.op("transpose", {{"x", g.input(shape)}, {"perm", Tensor::i32(order)}})}, 0);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(CpuPermute, ManyAndFewAxes) {
  Graph g;
  Value* x = g.input({2, 3, 2, 5, 3, 2});
  expect_same(g,
              {g.op("transpose", {{"x", x}, {"perm", Tensor::i32({5, -2, 0, 3, 2, 1})}}),
               g.op("transpose", {{"x", x}, {"perm", Tensor::i32({1, 0, 3, 2, 5, 4})}}),
               g.op("transpose", {{"x", g.input({100, 130})}, {"perm", Tensor::i32({1, 0})}}),
               g.op("transpose", {{"x", g.input({7})}, {"perm", Tensor::i32({0})}})},
              0);
}

TEST(CpuPermute, EveryElementType) {
  for (const char* t : {"int32", "int8", "uint8", "bool", "fp16", "int16"}) {
    SCOPED_TRACE(t);
    Graph g;
    Value* x = g.op("cast", {{"x", g.input({2, 19, 5, 21}, 0, 100)}, {"dtype", t}});
    expect_same(g,
                {g.op("transpose", {{"x", x}, {"perm", Tensor::i32({0, 2, 3, 1})}}),
                 g.op("transpose", {{"x", x}, {"perm", Tensor::i32({3, 1, 0, 2})}})},
                0, true);
  }
}

TEST(CpuPermute, BetweenBlocksAndChannelsLast) {
  for (int64_t channels : {16, 48, 20})
    for (int64_t width : {1, 9}) {
      SCOPED_TRACE(cat(channels, " channels, width ", width));
      Graph g;
      Value* x = conv(g, g.input({2, 3, 7, width}), 3, channels);
      Value* last = g.op("transpose", {{"x", x}, {"perm", Tensor::i32({0, 2, 3, 1})}});
      Value* first = g.op("transpose", {{"x", g.op("relu", {{"x", last}})}, {"perm", Tensor::i32({0, 3, 1, 2})}});
      Value* other = g.op("transpose", {{"x", x}, {"perm", Tensor::i32({1, 3, 0, 2})}});
      expect_same(g, {last, other, first, conv(g, first, channels, 16)});
    }
}

TEST(CpuPermute, PixelsAndChannels) {
  for (int64_t block : {1, 2, 3})
    for (int64_t channels : {1, 4, 16}) {
      SCOPED_TRACE(cat(block, " ", channels));
      Graph g;
      Value* deep = g.input({2, channels * block * block, 5, 7});
      Value* wide = g.input({2, channels, 5 * block, 7 * block});
      Tensor down = Tensor::scalar_i64(DType::uint32, block);
      expect_same(g,
                  {g.op("pixel_shuffle", {{"x", deep}, {"upscale_factor", Tensor::scalar_i64(DType::int32, block)}}),
                   g.op("depth_to_space", {{"x", deep}, {"block_size", Tensor::scalar_i64(DType::int32, block)}}),
                   g.op("pixel_unshuffle", {{"x", wide}, {"downscale_factor", down}}),
                   g.op("space_to_depth", {{"x", wide}, {"block_size", Tensor::scalar_i64(DType::int32, block)}})},
                  0);
    }
}

/// More elements than a tile, and numbers that the other type cannot hold.
TEST(CpuCast, EveryPairOfTypes) {
  const float inf = std::numeric_limits<float>::infinity();
  Graph g;
  Tensor numbers = g.random({3, 7001}, -4, 4);
  const float odd[] = {inf,           -inf,  std::nanf(""), 2147483648.0f, -2147483648.0f,
                       2147483520.0f, -3e9f, -0.0f,         0.99f,         -1.5f};
  std::copy(std::begin(odd), std::end(odd), numbers.mut<float>().begin());
  Value* x = g.input_of(numbers);
  std::vector<Value*> all;
  for (const char* to : {"int32", "bool", "fp16"}) {
    Value* y = g.op("cast", {{"x", x}, {"dtype", to}});
    all.push_back(y);
    for (const char* back : {"fp32", "int32", "bool"})
      if (std::string_view(to) != "fp16" && std::string_view(back) != to)
        all.push_back(g.op("cast", {{"x", y}, {"dtype", back}}));
  }
  const auto r = expect_same(g, all);
  EXPECT_TRUE(r.has("cpu.cast")) << r.kernels;
}

/// Negative indices and indices beyond the axis too.
TEST(CpuGather, AlongEveryAxis) {
  for (int axis : {0, 1, 2, -1}) {
    SCOPED_TRACE(axis);
    Graph g;
    Shape shape{5, 6, 7};
    Value* x = g.input(shape);
    shape[axis < 0 ? axis + 3 : axis] = 40;
    Tensor indices = *Tensor::zeros(DType::int32, shape);
    for (int64_t i = 0; i < indices.count(); i++) store_i64(indices.view(), i, i * 7 % 23 - 11);
    const auto r = expect_same(
        g, {g.op("gather_along_axis",
                 {{"x", x}, {"indices", g.input_of(indices)}, {"axis", axis}, {"validate_indices", false}})});
    EXPECT_TRUE(r.has("cpu.gather_along_axis")) << r.kernels;
  }
}

}  // namespace
}  // namespace moka::devices_test
