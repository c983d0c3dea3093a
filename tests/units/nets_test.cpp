// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "api/api_util.h"
#include "units/vulkan_driver.h"

/// Small nets with the topologies of the benchmark. Each is a single region on the device vulkan and gives the results
/// of the reference.
namespace moka::test {
namespace {

/// Numbers and booleans in MIL's text form: "x = 1, y = 0.5" becomes "x = int32(1), y = fp32(0.5)".
std::string with_types(const std::string& args) {
  std::string out;
  for (size_t at = 0; at < args.size();) {
    const size_t assigned = args.find("= ", at), begin = assigned == std::string::npos ? args.size() : assigned + 2,
                 end = std::min(args.find(',', begin), args.size());
    const std::string value = args.substr(begin, end - begin);
    out += args.substr(at, begin - at);
    if (value == "true" || value == "false")
      out += "bool(" + value + ")";
    else if (value.empty() || value.find_first_not_of("-.0123456789e") != std::string::npos)
      out += value;
    else
      out += (value.find_first_of(".e") == std::string::npos ? "int32(" : "fp32(") + value + ")";
    at = end;
  }
  return out;
}

/// Writes a program line by line. Weights are sines.
class Net {
 public:
  std::string op(const std::string& type, const std::string& shape, const std::string& args,
                 const char* dtype = "fp32") {
    const std::string name = "v" + std::to_string(next_++);
    text_ += "tensor<" + std::string(dtype) + ", [" + shape + "]> " + name + " = " + type + "(" + with_types(args) +
             ")[name = string(\"" + name + "\")];\n";
    return name;
  }
  void write_state(const std::string& state, const std::string& data) {
    text_ += "write_state(input = " + state + ", data = " + data + ")[name = string(\"v" + std::to_string(next_++) +
             "\")];\n";
  }
  std::string weights(const std::string& shape, int64_t count, double scale = 0.3) {
    std::vector<int64_t> sizes;
    for (size_t at = 0; at < shape.size();
         at = shape.find_first_of(",", at) == std::string::npos ? shape.size() : shape.find(',', at) + 1)
      sizes.push_back(std::stoll(shape.substr(at)));
    const std::string name = "v" + std::to_string(next_++);
    std::string list;
    for (int64_t i = 0; i < count; i++) {
      int64_t run = 1;
      std::string open, close;
      for (size_t d = sizes.size(); d-- > 0;) {
        run *= sizes[d];
        if (i % run == 0) open += "[";
        if (i % run == run - 1) close += "]";
      }
      list += (i > 0 ? ", " : "") + open + std::to_string(scale * std::sin(static_cast<double>(i + next_))) + close;
    }
    text_ += "tensor<fp32, [" + shape + "]> " + name + " = const()[name = string(\"" + name +
             "\"), val = tensor<fp32, [" + shape + "]>(" + list + ")];\n";
    return name;
  }
  /// A convolution of [1, in, side, side], padded so that only strides make it smaller.
  std::string conv(const std::string& x, int in, int out, int side, int kernel, int stride = 1, int groups = 1) {
    const std::string k = std::to_string(kernel), p = std::to_string(kernel / 2), s = std::to_string(stride);
    const int64_t per = in / groups;
    const std::string w = weights(std::to_string(out) + ", " + std::to_string(per) + ", " + k + ", " + k,
                                  out * per * kernel * kernel, 1.0 / static_cast<double>(per * kernel));
    const std::string bias = weights(std::to_string(out), out);
    return op("conv", image(out, side / stride),
              "bias = " + bias + ", dilations = tensor<int32, [2]>([1, 1]), groups = " + std::to_string(groups) +
                  ", pad = tensor<int32, [4]>([" + p + ", " + p + ", " + p + ", " + p +
                  "]), pad_type = string(\"custom\"), strides = tensor<int32, [2]>([" + s + ", " + s +
                  "]), weight = " + w + ", x = " + x);
  }
  std::string linear(const std::string& x, int rows, int in, int out) {
    return op("linear", std::to_string(rows) + ", " + std::to_string(out),
              "bias = " + weights(std::to_string(out), out) + ", weight = " +
                  weights(std::to_string(out) + ", " + std::to_string(in), int64_t{out} * in, 0.2) + ", x = " + x);
  }
  std::string norm(const std::string& x, const std::string& shape, int width) {
    return op("layer_norm", shape,
              "axes = tensor<int32, [1]>([-1]), beta = " + weights(std::to_string(width), width) +
                  ", epsilon = 1e-5, gamma = " + weights(std::to_string(width), width) + ", x = " + x);
  }
  static std::string image(int channels, int side) {
    return "1, " + std::to_string(channels) + ", " + std::to_string(side) + ", " + std::to_string(side);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int next_ = 0;
};

/// Expects a single region with all operations, and predictions equal to the reference.
void expect_one_region(const std::string& source, int predictions = 1) {
  MOKA_NEEDS_VULKAN_DRIVER();
  ModelConfiguration c;
  c.device = "vulkan";
  c.rates = "off";
  const Model m = Model::from_mil(source, c);
  const ComputePlan plan = m.compute_plan();
  EXPECT_EQ(plan.regions.size(), 1u);
  for (const PlannedOperation& o : plan.operations)
    if (!o.kernel.empty()) {
      EXPECT_EQ(o.device, "vulkan") << o.name << " (" << o.type << ")"
                                    << (o.refusals.empty() ? "" : ": " + o.refusals[0]);
    }
  c.device = "reference";
  const Model reference = Model::from_mil(source, c);
  std::optional<State> a, b;
  PredictionOptions with_a, with_b;
  if (!m.function().states.empty()) {
    with_a.state = &a.emplace(m.new_state());
    with_b.state = &b.emplace(reference.new_state());
  }
  for (int n = 0; n < predictions; n++) {
    const Features inputs = m.random_inputs(static_cast<uint64_t>(n) + 1);
    const Features got = m.predict(inputs, with_a), expected = reference.predict(inputs, with_b);
    for (const auto& [name, value] : expected) {
      const auto x = values(got.array(name)), y = values(expected.array(name));
      ASSERT_EQ(x.size(), y.size());
      double scale = 1e-3;
      for (double v : y) scale = std::max(scale, std::fabs(v));
      for (size_t i = 0; i < x.size(); i++) ASSERT_NEAR(x[i], y[i], 1e-4 * scale) << name << " " << i;
    }
  }
  if (!a) return;
  for (const std::string& name : a->names()) {
    const auto x = values(a->read(name)), y = values(b->read(name));
    for (size_t i = 0; i < x.size(); i++) ASSERT_NEAR(x[i], y[i], 1e-4) << name << " " << i;
  }
}

TEST(Nets, ResidualConvolutions) {
  Net n;
  std::string x = n.op("relu", Net::image(16, 16), "x = " + n.conv("image", 3, 16, 32, 7, 2));
  x = n.op("max_pool", Net::image(16, 8),
           "ceil_mode = false, kernel_sizes = tensor<int32, [2]>([3, 3]), pad = tensor<int32, [4]>([1, 1, 1, 1]), "
           "pad_type = "
           "string(\"custom\"), strides = tensor<int32, [2]>([2, 2]), x = " +
               x);
  for (int i = 0; i < 2; i++) {
    const std::string a = n.op("relu", Net::image(16, 8), "x = " + n.conv(x, 16, 16, 8, 3));
    x = n.op("relu", Net::image(16, 8),
             "x = " + n.op("add", Net::image(16, 8), "x = " + n.conv(a, 16, 16, 8, 1) + ", y = " + x));
  }
  x = n.op("reduce_mean", "1, 16", "axes = tensor<int32, [2]>([2, 3]), keep_dims = false, x = " + x);
  x = n.linear(x, 1, 16, 10);
  expect_one_region(program("tensor<fp32, [1, 3, 32, 32]> image", n.text(), x));
}

TEST(Nets, InvertedResidualsThatSqueezeAndExcite) {
  Net n;
  std::string x = n.conv("image", 3, 8, 32, 3, 2);
  for (int i = 0; i < 2; i++) {
    std::string y = n.op("silu", Net::image(32, 16), "x = " + n.conv(x, 8, 32, 16, 1));
    y = n.op("silu", Net::image(32, 16), "x = " + n.conv(y, 32, 32, 16, 3, 1, 32));
    std::string s =
        n.op("reduce_mean", Net::image(32, 1), "axes = tensor<int32, [2]>([2, 3]), keep_dims = true, x = " + y);
    s = n.op("relu", Net::image(8, 1), "x = " + n.conv(s, 32, 8, 1, 1));
    s = n.op("sigmoid", Net::image(32, 1), "x = " + n.conv(s, 8, 32, 1, 1));
    y = n.op("mul", Net::image(32, 16), "x = " + y + ", y = " + s);
    x = n.op("add", Net::image(8, 16), "x = " + n.conv(y, 32, 8, 16, 1) + ", y = " + x);
  }
  expect_one_region(program("tensor<fp32, [1, 3, 32, 32]> image", n.text(), x));
}

TEST(Nets, PyramidsWithHeads) {
  Net n;
  const std::string large =
      n.op("leaky_relu", Net::image(16, 16), "alpha = 0.1, x = " + n.conv("image", 3, 16, 32, 3, 2));
  const std::string small = n.op("silu", Net::image(16, 8), "x = " + n.conv(large, 16, 16, 16, 3, 2));
  const std::string up = n.op("upsample_nearest_neighbor", Net::image(16, 16),
                              "scale_factor_height = 2, scale_factor_width = 2, x = " + small);
  std::string x =
      n.op("concat", Net::image(32, 16), "axis = 1, interleave = false, values = (" + up + ", " + large + ")");
  x = n.conv(x, 32, 24, 16, 1);
  x = n.op("transpose", "1, 256, 24",
           "perm = tensor<int32, [3]>([0, 2, 1]), x = " +
               n.op("reshape", "1, 24, 256", "shape = tensor<int32, [3]>([1, 24, 256]), x = " + x));
  const std::string boxes =
      n.op("slice_by_size", "1, 256, 4",
           "begin = tensor<int32, [3]>([0, 0, 0]), size = tensor<int32, [3]>([1, 256, 4]), x = " + x);
  const std::string scores =
      n.op("sigmoid", "1, 256, 20",
           "x = " + n.op("slice_by_size", "1, 256, 20",
                         "begin = tensor<int32, [3]>([0, 0, 4]), size = tensor<int32, [3]>([1, 256, 20]), x = " + x));
  const std::string placed =
      n.op("mul", "1, 256, 4",
           "x = " + n.op("add", "1, 256, 4", "x = " + boxes + ", y = " + n.weights("1, 256, 1", 256)) + ", y = 8.0");
  expect_one_region(program("tensor<fp32, [1, 3, 32, 32]> image", n.text(), placed + ", " + scores));
}

TEST(Nets, TransformersOfTokens) {
  Net n;
  const std::string table = n.weights("50, 16", 800);
  std::string x =
      n.op("gather", "12, 16", "axis = 0, batch_dims = 0, indices = ids, validate_indices = false, x = " + table);
  for (int i = 0; i < 2; i++) {
    std::string parts[3];
    const std::string normed = n.norm(x, "12, 16", 16);
    for (std::string& p : parts) {
      const std::string split =
          n.op("reshape", "12, 2, 8", "shape = tensor<int32, [3]>([12, 2, 8]), x = " + n.linear(normed, 12, 16, 16));
      p = n.op("transpose", "2, 12, 8", "perm = tensor<int32, [3]>([1, 0, 2]), x = " + split);
    }
    std::string scores =
        n.op("matmul", "2, 12, 12", "transpose_x = false, transpose_y = true, x = " + parts[0] + ", y = " + parts[1]);
    scores = n.op("softmax", "2, 12, 12", "axis = -1, x = " + n.op("mul", "2, 12, 12", "x = " + scores + ", y = 0.35"));
    std::string y =
        n.op("matmul", "2, 12, 8", "transpose_x = false, transpose_y = false, x = " + scores + ", y = " + parts[2]);
    y = n.op("reshape", "12, 16",
             "shape = tensor<int32, [2]>([12, 16]), x = " +
                 n.op("transpose", "12, 2, 8", "perm = tensor<int32, [3]>([1, 0, 2]), x = " + y));
    x = n.op("add", "12, 16", "x = " + x + ", y = " + n.linear(y, 12, 16, 16));
    const std::string hidden =
        n.op("gelu", "12, 32", "mode = string(\"EXACT\"), x = " + n.linear(n.norm(x, "12, 16", 16), 12, 16, 32));
    x = n.op("add", "12, 16", "x = " + x + ", y = " + n.linear(hidden, 12, 32, 16));
  }
  expect_one_region(program("tensor<int32, [12]> ids", n.text(), x));
}

TEST(Nets, RecurrentLayers) {
  Net n;
  const std::string zeros = n.weights("1, 8", 8, 0);
  const std::string lstm =
      "tensor<fp32, [5, 1, 8]> y, tensor<fp32, [1, 8]> h, tensor<fp32, [1, 8]> c = lstm(activation = string(\"tanh\"), "
      "bias = " +
      n.weights("32", 32) +
      ", cell_activation = string(\"tanh\"), direction = string(\"forward\"), initial_c = " + zeros +
      ", initial_h = " + zeros +
      ", output_sequence = bool(true), recurrent_activation = string(\"sigmoid\"), weight_hh = " +
      n.weights("32, 8", 256) + ", weight_ih = " + n.weights("32, 6", 192) +
      ", x = features)[name = string(\"lstm\")];\n";
  expect_one_region(program(
      "tensor<fp32, [5, 1, 6]> features",
      n.text() + lstm +
          "tensor<fp32, [5, 8]> rows = squeeze(axes = tensor<int32, [1]>([1]), x = y)[name = string(\"rows\")];\n",
      "rows"));
}

TEST(Nets, StylesWithReflectedBorders) {
  Net n;
  std::string x =
      n.op("pad", "1, 3, 36, 36",
           "constant_val = 0.0, mode = string(\"reflect\"), pad = tensor<int32, [4]>([2, 2, 2, 2]), x = image");
  x = n.conv(x, 3, 8, 36, 3, 2);
  x = n.op("instance_norm", Net::image(8, 18),
           "beta = " + n.weights("8", 8) + ", epsilon = 1e-5, gamma = " + n.weights("8", 8) + ", x = " + x);
  x = n.op("relu", Net::image(8, 18), "x = " + x);
  x = n.op("tanh", Net::image(4, 18), "x = " + n.conv(x, 8, 4, 18, 3));
  x = n.op("pixel_shuffle", Net::image(1, 36), "upscale_factor = 2, x = " + x);
  expect_one_region(program("tensor<fp32, [1, 3, 32, 32]> image", n.text(), x));
}

/// States are read and written in the middle of the net, like the keys and values of a decoder's layers.
TEST(Nets, DecodersWithStates) {
  Net n;
  std::string x = "token";
  for (int layer = 0; layer < 3; layer++) {
    const std::string at = std::to_string(layer), next = std::to_string(layer + 1);
    const std::string key = n.linear(x, 1, 8, 8);
    const std::string kept = n.op("read_state", "3, 5, 8", "input = keys");
    const std::string placed = n.op(
        "slice_update", "3, 5, 8",
        "begin = tensor<int32, [3]>([" + at + ", 4, 0]), end = tensor<int32, [3]>([" + next + ", 5, 8]), update = " +
            n.op("reshape", "1, 1, 8", "shape = tensor<int32, [3]>([1, 1, 8]), x = " + key) + ", x = " + kept);
    n.write_state("keys", placed);
    const std::string own = n.op("reshape", "5, 8",
                                 "shape = tensor<int32, [2]>([5, 8]), x = " +
                                     n.op("slice_by_size", "1, 5, 8",
                                          "begin = tensor<int32, [3]>([" + at +
                                              ", 0, 0]), size = tensor<int32, [3]>([1, 5, 8]), x = " + placed));
    const std::string scores =
        n.op("softmax", "1, 5",
             "axis = -1, x = " +
                 n.op("matmul", "1, 5", "transpose_x = false, transpose_y = true, x = " + x + ", y = " + own));
    x = n.op("add", "1, 8",
             "x = " + x + ", y = " +
                 n.op("matmul", "1, 8", "transpose_x = false, transpose_y = false, x = " + scores + ", y = " + own));
  }
  expect_one_region(program("state<tensor<fp32, [3, 5, 8]>> keys, tensor<fp32, [1, 8]> token", n.text(), x), 3);
}

}  // namespace
}  // namespace moka::test
