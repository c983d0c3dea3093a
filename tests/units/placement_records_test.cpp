// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "api/api_util.h"

/// The preview of the Neural Engine beside public records of MLComputePlan on Apple's chips (docs/neural-engine.md).
/// The nets have the operations of the recorded ones, with fewer layers and narrower.
namespace moka::test {
namespace {

std::string list(const std::vector<int64_t>& sizes) {
  std::string out;
  for (const int64_t n : sizes) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return "[" + out + "]";
}

/// Writes a program in float16, line by line.
class RecordedNet {
 public:
  using Sizes = std::vector<int64_t>;

  std::string op(const std::string& type, const Sizes& shape, const std::string& args, const char* dtype = "fp16") {
    const std::string name = "v" + std::to_string(next_++);
    text_ += "tensor<" + std::string(dtype) + ", " + list(shape) + "> " + name + " = " + type + "(" + args +
             ")[name = string(\"" + name + "\")];\n";
    return name;
  }
  std::string weights(const Sizes& shape, const char* dtype = "fp16") {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    std::string values;
    for (int64_t i = 0; i < count; i++) {
      std::string open, close;
      int64_t run = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        run *= shape[d];
        if (i % run == 0) open += "[";
        if (i % run == run - 1) close += "]";
      }
      values += (i > 0 ? ", " : "") + open + (dtype == std::string("fp16") ? "0.5" : "1") + close;
    }
    const std::string name = "v" + std::to_string(next_++),
                      type = "tensor<" + std::string(dtype) + ", " + list(shape) + ">";
    text_ += type + " " + name + " = const()[name = string(\"" + name + "\"), val = " + type + "(" + values + ")];\n";
    return name;
  }
  std::string conv(const std::string& x, const Sizes& weight, const Sizes& result, int64_t stride, int64_t pad,
                   int64_t groups = 1) {
    const size_t axes = weight.size() - 2;
    const std::string n = std::to_string(axes), sides = std::to_string(2 * axes);
    return op("conv", result,
              "dilations = tensor<int32, [" + n + "]>(" + list(Sizes(axes, 1)) + "), groups = int32(" +
                  std::to_string(groups) + "), pad = tensor<int32, [" + sides + "]>(" + list(Sizes(2 * axes, pad)) +
                  "), pad_type = string(\"custom\"), strides = tensor<int32, [" + n + "]>(" +
                  list(Sizes(axes, stride)) + "), weight = " + weights(weight) + ", x = " + x);
  }
  std::string linear(const std::string& x, const Sizes& rows, int64_t in, int64_t out) {
    Sizes shape = rows;
    shape.push_back(out);
    return op("linear", shape, "bias = " + weights({out}) + ", weight = " + weights({out, in}) + ", x = " + x);
  }
  std::string norm(const std::string& x, const Sizes& shape) {
    return op("layer_norm", shape,
              "axes = tensor<int32, [1]>([-1]), beta = " + weights({shape.back()}) +
                  ", epsilon = fp16(0x1.5p-17), gamma = " + weights({shape.back()}) + ", x = " + x);
  }
  std::string reshape(const std::string& x, const Sizes& shape) {
    return op("reshape", shape,
              "shape = tensor<int32, [" + std::to_string(shape.size()) + "]>(" + list(shape) + "), x = " + x);
  }
  std::string transpose(const std::string& x, const Sizes& perm, const Sizes& shape) {
    return op("transpose", shape,
              "perm = tensor<int32, [" + std::to_string(perm.size()) + "]>(" + list(perm) + "), x = " + x);
  }
  std::string matmul(const std::string& x, const std::string& y, const Sizes& shape) {
    return op("matmul", shape, "transpose_x = bool(false), transpose_y = bool(false), x = " + x + ", y = " + y);
  }
  std::string add(const std::string& x, const std::string& y, const Sizes& shape) {
    return op("add", shape, "x = " + x + ", y = " + y);
  }
  std::string gelu(const std::string& x, const Sizes& shape) {
    return op("gelu", shape, "mode = string(\"EXACT\"), x = " + x);
  }

  /// The 23 operations that coremltools makes of a layer of a transformer: [1, rows, width] with 2 heads.
  std::string layer(std::string x, int64_t rows, int64_t width, bool scales_queries, bool norms_first) {
    const Sizes plain{1, rows, width}, split{1, rows, 2, width / 2}, heads{1, 2, rows, width / 2};
    const auto part = [&](const std::string& from, const Sizes& perm, const Sizes& to, bool scales = false) {
      std::string y = linear(from, {1, rows}, width, width);
      if (scales) y = op("mul", plain, "x = " + y + ", y = fp16(0x1p-1)");
      return transpose(reshape(y, split), perm, to);
    };
    const std::string in = norms_first ? norm(x, plain) : x;
    const std::string q = part(in, {0, 2, 1, 3}, heads, scales_queries), v = part(in, {0, 2, 1, 3}, heads);
    const std::string k = part(in, {0, 2, 3, 1}, {1, 2, width / 2, rows});
    std::string scores = matmul(q, k, {1, 2, rows, rows});
    if (!scales_queries) scores = op("mul", {1, 2, rows, rows}, "x = " + scores + ", y = fp16(0x1p-1)");
    scores = op("softmax", {1, 2, rows, rows}, "axis = int32(-1), x = " + scores);
    const std::string mixed = matmul(scores, v, heads);
    const std::string out = linear(reshape(transpose(mixed, {0, 2, 1, 3}, split), plain), {1, rows}, width, width);
    x = add(x, out, plain);
    const std::string normed = norm(x, plain);
    if (!norms_first) x = normed;
    const std::string wide = gelu(linear(normed, {1, rows}, width, 2 * width), {1, rows, 2 * width});
    x = add(x, linear(wide, {1, rows}, 2 * width, width), plain);
    return norms_first ? x : norm(x, plain);
  }
  std::string mean(const std::string& x, int64_t width) {
    return op("reduce_mean", {1, width}, "axes = tensor<int32, [1]>([1]), keep_dims = bool(false), x = " + x);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int next_ = 0;
};

/// What the preview says of the operations of a model, by type.
struct Previewed {
  size_t operations = 0;
  std::map<std::string, int> refused, doubted;
};

Previewed previewed(const std::string& inputs, const std::string& body, const std::string& output) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_and_neural_engine;
  c.optimize = false;
  c.precision = Precision::exact;
  c.reuse_buffers = false;
  Previewed out;
  for (const PlannedOperation& o : Model::from_mil(program(inputs, body, output), c).compute_plan().operations)
    for (const UnitBid& b : o.bids) {
      if (o.kernel.empty() || b.unit != "neuralEngine") continue;
      out.operations++;
      if (!b.refusal.empty()) out.refused[o.type]++;
      if (!b.doubt.empty()) out.doubted[b.rule]++;
      EXPECT_EQ(b.rule.empty(), b.source.empty()) << b.refusal;
    }
  return out;
}

constexpr int kLayers = 2;
constexpr size_t kOfLayer = 23;
const std::map<std::string, int> kNone;

TEST(PlacementRecords, VisionTransformerIsOnTheNeuralEngine) {
  // siglip-residency.json: 282 of 282 with 12 layers, the convolution of patches too.
  RecordedNet n;
  std::string x = n.reshape(n.conv("image", {16, 3, 16, 16}, {1, 16, 3, 3}, 16, 0), {1, 16, 9});
  x = n.add(n.transpose(x, {0, 2, 1}, {1, 9, 16}), n.weights({1, 9, 16}), {1, 9, 16});
  for (int i = 0; i < kLayers; i++) x = n.layer(x, 9, 16, false, true);
  x = n.mean(n.norm(x, {1, 9, 16}), 16);
  const Previewed p = previewed("tensor<fp16, [1, 3, 48, 48]> image", n.text(), x);
  EXPECT_EQ(p.operations, 6 + kLayers * kOfLayer);
  EXPECT_EQ(p.refused, kNone);
}

TEST(PlacementRecords, LargeWindowsThatOverlapAreRefused) {
  for (const auto& [stride, pad, side, refused] : {std::tuple{16, 0, 2, 0}, {8, 0, 3, 1}, {16, 16, 4, 1}}) {
    RecordedNet n;
    const std::string y = n.conv("image", {4, 3, 16, 16}, {1, 4, side, side}, stride, pad);
    EXPECT_EQ(previewed("tensor<fp16, [1, 3, 32, 32]> image", n.text(), y).refused["conv"], refused) << stride;
  }
}

TEST(PlacementRecords, SpeechEncoderIsOnTheNeuralEngine) {
  // experiments-whisper-CPU_AND_NE.json: 101 of 101 with 4 layers, the cast of the input too.
  RecordedNet n;
  std::string x = n.op("cast", {1, 8, 20}, "dtype = string(\"fp16\"), x = mel");
  x = n.gelu(n.conv(x, {16, 8, 3}, {1, 16, 20}, 1, 1), {1, 16, 20});
  x = n.gelu(n.conv(x, {16, 16, 3}, {1, 16, 10}, 2, 1), {1, 16, 10});
  x = n.add(n.transpose(x, {0, 2, 1}, {1, 10, 16}), n.weights({1, 10, 16}), {1, 10, 16});
  for (int i = 0; i < kLayers; i++) x = n.layer(x, 10, 16, true, true);
  x = n.mean(n.norm(x, {1, 10, 16}), 16);
  const Previewed p = previewed("tensor<fp32, [1, 8, 20]> mel", n.text(), x);
  EXPECT_EQ(p.operations, 9 + kLayers * kOfLayer);
  EXPECT_EQ(p.refused, kNone);
}

TEST(PlacementRecords, TextEncoderKeepsItsTokensOnTheCpu) {
  // experiments-bert-CPU_AND_NE.json: 141 of 148 with 6 layers; on the CPU three casts, greater_equal, add, select and
  // gather, which compute indices and look up the embeddings.
  RecordedNet n;
  const std::string narrow = n.op("cast", {1, 9}, "dtype = string(\"int16\"), x = ids", "int16");
  const std::string wide = n.op("cast", {1, 9}, "dtype = string(\"int32\"), x = " + narrow, "int32");
  const std::string is_positive = n.op("greater_equal", {1, 9}, "x = " + wide + ", y = int32(0)", "bool");
  const std::string wrapped = n.op("add", {1, 9}, "x = " + wide + ", y = int32(30)", "int32");
  std::string index = n.op("select", {1, 9}, "a = " + wide + ", b = " + wrapped + ", cond = " + is_positive, "int32");
  index = n.op("cast", {1, 9}, "dtype = string(\"uint16\"), x = " + index, "uint16");
  std::string x = n.op("gather", {1, 9, 16},
                       "axis = int32(0), batch_dims = int32(0), indices = " + index +
                           ", validate_indices = bool(false), x = " + n.weights({30, 16}));
  x = n.norm(n.add(x, n.weights({1, 9, 16}), {1, 9, 16}), {1, 9, 16});
  for (int i = 0; i < kLayers; i++) x = n.layer(x, 9, 16, false, false);
  x = n.mean(x, 16);
  const Previewed p = previewed("tensor<int32, [1, 9]> ids", n.text(), x);
  EXPECT_EQ(p.operations, 10 + kLayers * kOfLayer);
  EXPECT_EQ(p.refused,
            (std::map<std::string, int>{{"cast", 3}, {"greater_equal", 1}, {"add", 1}, {"select", 1}, {"gather", 1}}));
}

TEST(PlacementRecords, ConvolutionalNetsAreOnTheNeuralEngine) {
  // experiments-resnet50-CPU_AND_NE.json: 122 of 122.
  RecordedNet n;
  const auto relu = [&](const std::string& x, const RecordedNet::Sizes& shape) {
    return n.op("relu", shape, "x = " + x);
  };
  std::string x = n.op("cast", {1, 3, 32, 32}, "dtype = string(\"fp16\"), x = image");
  x = relu(n.conv(x, {8, 3, 7, 7}, {1, 8, 16, 16}, 2, 3), {1, 8, 16, 16});
  x = n.op(
      "max_pool", {1, 8, 8, 8},
      "ceil_mode = bool(false), kernel_sizes = tensor<int32, [2]>([3, 3]), pad = tensor<int32, [4]>([1, 1, 1, 1]), "
      "pad_type = string(\"custom\"), strides = tensor<int32, [2]>([2, 2]), x = " +
          x);
  for (int i = 0; i < kLayers; i++) {
    std::string y = relu(n.conv(x, {4, 8, 1, 1}, {1, 4, 8, 8}, 1, 0), {1, 4, 8, 8});
    y = relu(n.conv(y, {4, 4, 3, 3}, {1, 4, 8, 8}, 1, 1), {1, 4, 8, 8});
    x = relu(n.add(n.conv(y, {8, 4, 1, 1}, {1, 8, 8, 8}, 1, 0), x, {1, 8, 8, 8}), {1, 8, 8, 8});
  }
  x = n.op("reduce_mean", {1, 8, 1, 1}, "axes = tensor<int32, [2]>([-1, -2]), keep_dims = bool(true), x = " + x);
  x = n.reshape(x, {1, 8});
  const Previewed resnet = previewed("tensor<fp32, [1, 3, 32, 32]> image", n.text(), x);
  EXPECT_EQ(resnet.operations, 6 + kLayers * 7u);
  EXPECT_EQ(resnet.refused, kNone);

  // experiments-mobilenet-CPU_AND_NE.json: 118 of 118.
  RecordedNet m;
  x = m.op("cast", {1, 3, 32, 32}, "dtype = string(\"fp16\"), x = image");
  x = m.op("pad", {1, 3, 33, 33},
           "constant_val = fp16(0x0p+0), mode = string(\"constant\"), pad = tensor<int32, [8]>([0, 0, 0, 0, 0, 1, 0, "
           "1]), x = " +
               x);
  x = m.op("relu6", {1, 8, 16, 16}, "x = " + m.conv(x, {8, 3, 3, 3}, {1, 8, 16, 16}, 2, 0));
  for (int i = 0; i < kLayers; i++) {
    std::string y = m.op("relu6", {1, 16, 16, 16}, "x = " + m.conv(x, {16, 8, 1, 1}, {1, 16, 16, 16}, 1, 0));
    y = m.op("relu6", {1, 16, 16, 16}, "x = " + m.conv(y, {16, 1, 3, 3}, {1, 16, 16, 16}, 1, 1, 16));
    x = m.add(m.conv(y, {8, 16, 1, 1}, {1, 8, 16, 16}, 1, 0), x, {1, 8, 16, 16});
  }
  x = m.op("reduce_mean", {1, 8, 1, 1}, "axes = tensor<int32, [2]>([-1, -2]), keep_dims = bool(true), x = " + x);
  const Previewed mobilenet = previewed("tensor<fp32, [1, 3, 32, 32]> image", m.text(), x);
  EXPECT_EQ(mobilenet.operations, 5 + kLayers * 6u);
  EXPECT_EQ(mobilenet.refused, kNone);
}

/// The doubts about a program of one product.
std::map<std::string, int> doubts_of_matmul(int64_t size) {
  const std::string type = "tensor<fp16, " + list({size, size}) + "> ";
  RecordedNet n;
  const std::string y = n.matmul("a", "b", {size, size});
  return previewed(type + "a, " + type + "b", n.text(), y).doubted;
}

TEST(PlacementRecords, LoneProductsAreDoubtedBelowTheRecordedSizes) {
  // vx-lang/Vx#435, #436 (M4): the CPU for 4 and 384, the Neural Engine for 512.
  EXPECT_EQ(doubts_of_matmul(4).count("lone-matmul"), 1u);
  EXPECT_EQ(doubts_of_matmul(384).count("lone-matmul"), 1u);
  EXPECT_EQ(doubts_of_matmul(512), kNone);
  // vx-lang/Vx#437 (M4): fused attention of 2,097,152 elements and more in each of queries, keys and values.
  for (const auto& [heads, rows, width, doubted] :
       {std::tuple{1, 2048, 128, 1u}, {8, 512, 64, 1u}, {16, 1024, 64, 1u}, {16, 2048, 64, 0u}, {32, 1024, 128, 0u}}) {
    const std::string type = "tensor<fp16, " + list({1, heads, rows, width}) + "> ";
    RecordedNet n;
    const std::string y =
        n.op("scaled_dot_product_attention", {1, heads, rows, width}, "key = k, query = q, value = v");
    const Previewed p = previewed(type + "q, " + type + "k, " + type + "v", n.text(), y);
    EXPECT_EQ(p.refused, kNone);
    EXPECT_EQ(p.doubted.count("lone-attention"), doubted) << heads << " x " << rows;
  }
  // chrishayuk/larql#312: the depth of a product of one row, preferred from about 4,992 on and admissible to 16,384.
  for (const auto& [depth, doubted, refused] :
       {std::tuple{4096, 1u, 0}, {5120, 0u, 0}, {16384, 0u, 0}, {16385, 0u, 1}}) {
    RecordedNet n;
    const std::string y = n.linear("x", {1}, depth, 2);
    Previewed p = previewed("tensor<fp16, " + list({1, depth}) + "> x", n.text(), y);
    EXPECT_EQ(p.doubted.count("lone-linear"), doubted) << depth;
    EXPECT_EQ(p.refused["linear"], refused) << depth;
  }
}

TEST(PlacementRecords, SmallProgramsAreDoubted) {
  // FluidAudio's ANE_Profiler.md (M5): programs of less than 5.5 MB in float16 on the CPU, such as the head of Parakeet
  // CTC (2 MB, 6 operations); larger ones and those that compute much on the Neural Engine.
  RecordedNet n;
  const std::string few = n.op("softmax", {4, 8}, "axis = int32(-1), x = " + n.linear("x", {4}, 8, 8));
  EXPECT_EQ(previewed("tensor<fp16, [4, 8]> x", n.text(), few).doubted.size(), 2u);  // small-program and lone-linear
  RecordedNet m;
  std::string x = "x";
  for (int i = 0; i < 6; i++)
    x = m.op("relu", {1, 16, 128, 128}, "x = " + m.conv(x, {16, 16, 3, 3}, {1, 16, 128, 128}, 1, 1));
  EXPECT_EQ(previewed("tensor<fp16, [1, 16, 128, 128]> x", m.text(), x).doubted, kNone);
}

TEST(PlacementRecords, CellsScattersAndRangesStayOff) {
  // FluidAudio's ANE_Profiler.md (M5): lstm never, a rank-5 scatter at no precision, sizes within a range never.
  EXPECT_EQ(
      previewed(
          "tensor<fp16, [4]> x, tensor<int32, [2]> i, tensor<fp16, [2]> u",
          "tensor<fp16, [4]> y = scatter(axis = int32(0), data = x, indices = i, mode = string(\"update\"), updates = "
          "u, validate_indices = bool(false))[name = string(\"y\")];",
          "y")
          .refused["scatter"],
      1);
  RecordedNet n;
  const std::string y =
      n.op("lstm", {3, 1, 2},
           "activation = string(\"tanh\"), cell_activation = string(\"tanh\"), direction = string(\"forward\"), "
           "initial_c = c, initial_h = h, output_sequence = bool(true), recurrent_activation = "
           "string(\"sigmoid\"), weight_hh = " +
               n.weights({8, 2}) + ", weight_ih = " + n.weights({8, 4}) + ", x = x");
  const std::string text = n.text();
  const std::string three = text.substr(0, text.rfind("tensor<fp16, [3, 1, 2]> " + y)) + "tensor<fp16, [3, 1, 2]> " +
                            y + ", tensor<fp16, [1, 2]> last_h, tensor<fp16, [1, 2]> last_c" +
                            text.substr(text.rfind("tensor<fp16, [3, 1, 2]> " + y) + 24 + y.size());
  EXPECT_EQ(
      previewed("tensor<fp16, [3, 1, 4]> x, tensor<fp16, [1, 2]> h, tensor<fp16, [1, 2]> c", three, y).refused["lstm"],
      1);
}

}  // namespace
}  // namespace moka::test
