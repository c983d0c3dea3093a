// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <execinfo.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "api/api_util.h"
#include "models_folder.h"
#include "moka/program.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)

// Every allocation of the process goes through these operators, including the library's.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0}, of_onednn{0};
thread_local bool looking = false;

/// Whether the call comes from inside oneDNN, which creates a small table of arguments each time a primitive runs.
bool from_onednn() {
  void* frames[12];
  int n = backtrace(frames, 12);
  for (int i = 0; i < n; i++) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
    if (std::strstr(info.dli_fname, "libmoka") != nullptr) return false;
    if (std::strstr(info.dli_fname, "libdnnl") != nullptr) return true;
  }
  return false;
}

void note() {
  if (!counting.load(std::memory_order_relaxed) || looking) return;
  looking = true;
  (from_onednn() ? of_onednn : allocations).fetch_add(1, std::memory_order_relaxed);
  looking = false;
}
}  // namespace

extern "C" {
__attribute__((visibility("default"))) void* malloc(size_t n) {
  note();
  return __libc_malloc(n);
}
__attribute__((visibility("default"))) void* calloc(size_t n, size_t m) {
  note();
  return __libc_calloc(n, m);
}
__attribute__((visibility("default"))) void* realloc(void* p, size_t n) {
  note();
  return __libc_realloc(p, n);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t n) {
  note();
  return __libc_memalign(alignment, n);
}
__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t n) {
  note();
  return __libc_memalign(alignment, n);
}
__attribute__((visibility("default"))) int posix_memalign(void** out, size_t alignment, size_t n) {
  note();
  *out = __libc_memalign(alignment, n);
  return *out == nullptr ? 12 : 0;
}
}

namespace moka::test {
namespace {

/// Number of allocations of one prediction into backings, after a first one of the same shape. Does not count oneDNN's
/// own.
long count(const Model& m, const Features& in, Features& out) {
  m.predict(in, out);
  allocations = 0;
  counting = true;
  m.predict(in, out);
  counting = false;
  return allocations;
}

TEST(Allocation, TheCounterCounts) {
  allocations = 0;
  counting = true;
  Features f{{"x", 1.0}};
  MultiArray a(DataType::float32, {100});
  counting = false;
  EXPECT_GT(allocations, 2);
  EXPECT_EQ(of_onednn, 0);
}

class Allocation : public testing::TestWithParam<int> {};

void expect_none(const std::string& path, int threads) {
  ModelConfiguration c;
  c.threads = threads;
  Model m = Model::load(path, c);
  Features in = random_inputs(m.function()), out;
  of_onednn = 0;
  EXPECT_EQ(count(m, in, out), 0) << path;
  std::cout << "  " << path.substr(path.rfind('/') + 1) << ": " << of_onednn << " of oneDNN's own\n";
}

TEST_P(Allocation, NoneForModels) {
  MOKA_NEEDS_MODELS(folder);
  for (const char* name : {"image_nn/MNIST.mlmodel", "image_nn/TinyDrawingEmbedding.mlmodel", "pose/cpm_pose.mlmodel",
                           "basic_pitch/nmp.mlpackage", "silero_vad/silero-vad-unified-v6.0.0.mlpackage",
                           "silero_vad/unified_palette_4bit.mlpackage", "seq2seq_lstm/Es2EnCharEncoder.mlmodel",
                           "seq2seq_lstm/Es2EnCharDecoder.mlmodel", "custom_and_image_io/Image2Image.mlmodel"})
    expect_none((*folder / name).string(), GetParam());
}

/// Several shapes, one after another, repeatedly.
TEST_P(Allocation, NoneForShapesSeenBefore) {
  ModelConfiguration c;
  c.threads = GetParam();
  Model m = Model::load(MOKA_GOLDEN "/flexible/range.mlmodel", c);
  std::vector<Features> in, out(3);
  for (int64_t n : {2, 30, 5000}) in.push_back({{"x", MultiArray(DataType::float32, {3, n})}});
  for (size_t i = 0; i < 3; i++) m.predict(in[i], out[i]);
  allocations = 0;
  counting = true;
  for (int round = 0; round < 3; round++)
    for (size_t i = 0; i < 3; i++) m.predict(in[i], out[i]);
  counting = false;
  EXPECT_EQ(allocations, 0);
}

/// Inputs that must be converted, strided inputs, and a state.
TEST_P(Allocation, NoneForConvertedInputs) {
  ModelConfiguration c;
  c.threads = GetParam();
  Model m = Model::from_mil(program("state<tensor<fp16, [64]>> kept, tensor<fp16, [64]> x",
                                    R"(tensor<fp16, [64]> a = read_state(input = kept)[name = string("a")];
    tensor<fp16, [64]> b = add(x = a, y = x)[name = string("b")];
    tensor<fp16, [64]> y = coreml_update_state(state = kept, value = b)[name = string("y")];)",
                                    "y"),
                            c);
  State s = m.new_state();
  PredictionOptions options{&s};
  std::vector<double> data(128, 1);
  Features in{{"x", MultiArray(data.data(), DataType::float64, {64}, {2})}}, out;
  m.predict(in, out, options);
  allocations = 0;
  counting = true;
  m.predict(in, out, options);
  counting = false;
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(out.array("y").at(63), 2);
}

/// Loops within loops, of any number of iterations.
TEST_P(Allocation, NoneForLoops) {
  ModelConfiguration c;
  c.threads = GetParam();
  Model m = Model::from_mil(program("int32 n, tensor<fp16, [64]> x",
                                    R"(int32 i, tensor<fp16, [64]> y = while_loop(loop_vars = (int32(0), x)) {
      block outer_test(int32 k, tensor<fp16, [64]> v) { bool more = less(x = k, y = n); } -> (more);
      block outer_step(int32 k, tensor<fp16, [64]> v) {
        int32 after = add(x = k, y = int32(1));
        int32 j, tensor<fp16, [64]> next = while_loop(loop_vars = (int32(0), v)) {
          block test(int32 l, tensor<fp16, [64]> w) { bool go = less(x = l, y = int32(3)); } -> (go);
          block step(int32 l, tensor<fp16, [64]> w) {
            int32 then = add(x = l, y = int32(1));
            tensor<fp16, [64]> u = add(x = w, y = fp16(1));
          } -> (then, u);
        };
      } -> (after, next);
    };)",
                                    "y"),
                            c);
  std::vector<Features> in, out(3);
  for (int32_t n : {1, 0, 200}) {
    MultiArray count(DataType::int32, {1});
    count.as<int32_t>()[0] = n;
    in.push_back({{"n", count}, {"x", MultiArray(DataType::float16, {64})}});
  }
  m.predict(in[0], out[0]);
  m.predict(in[1], out[1]);
  m.predict(in[1], out[2]);
  allocations = 0;
  counting = true;
  for (size_t i = 0; i < 3; i++) m.predict(in[i], out[i]);
  counting = false;
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(out[0].array("y").at(63), 3);
  EXPECT_EQ(out[2].array("y").at(63), 600);
}

/// A matrix of numbers between -1 and 1 as MIL writes it.
std::string numbers(int rows, int columns, int seed) {
  std::string text;
  for (int i = 0; i < rows * columns; i++)
    text += (i == 0             ? "[["
             : i % columns == 0 ? "], ["
                                : ", ") +
            std::to_string(((i * 37 + seed * 11) % 41 - 20) / 32.0);
  return text + "]]";
}

/// A recurrent layer as converters write it, next to the operation itself. Values written to a list are copied once.
TEST_P(Allocation, NoneForRecurrentLoopsButTheirResults) {
  constexpr int kWidth = 4, kHidden = 8, kSteps = 50;
  auto constant = [](const std::string& name, int rows, int columns, int seed) {
    const std::string type = "tensor<fp16, [" + std::to_string(rows) + ", " + std::to_string(columns) + "]>";
    return type + " " + name + " = const()[val = " + type + "(" + numbers(rows, columns, seed) + ")];\n";
  };
  const std::string list = "list<tensor<fp16, [1, 8]>, ?>", row = "tensor<fp16, [1, 8]> ";
  const std::string start =
      constant("wi", 3 * kHidden, kWidth, 1) + constant("wh", 3 * kHidden, kHidden, 2) + constant("h0", 1, kHidden, 4);
  const std::string step =
      "int32 after = add(x = k, y = int32(1));\ntensor<fp16, [1, 4]> now = gather(x = x, indices = k, axis = "
      "int32(0));\n"
      "tensor<fp16, [1, 24]> gi = linear(x = now, weight = wi);\n"
      "tensor<fp16, [1, 24]> gh = linear(x = h, weight = wh);\n" +
      row + "ri, " + row + "oi, " + row + "zi = split(x = gi, num_splits = int32(3), axis = int32(1));\n" + row +
      "rh, " + row + "oh, " + row + "zh = split(x = gh, num_splits = int32(3), axis = int32(1));\n" + row +
      "rs = add(x = ri, y = rh);\n" + row + "r = sigmoid(x = rs);\n" + row + "zs = add(x = zi, y = zh);\n" + row +
      "z = sigmoid(x = zs);\n" + row + "ro = mul(x = r, y = oh);\n" + row + "os = add(x = oi, y = ro);\n" + row +
      "o = tanh(x = os);\n" + row + "nz = sub(x = fp16(1), y = z);\n" + row + "new = mul(x = nz, y = o);\n" + row +
      "old = mul(x = z, y = h);\n" + row + "next = add(x = new, y = old);\n";
  auto loop = [&](const std::string& more, const std::string& more_start, const std::string& more_step,
                  const std::string& more_out) {
    const std::string vars = "int32 k, " + row + "h" + (more.empty() ? "" : ", " + more + " l");
    return "int32 i, " + row + "y" + (more.empty() ? "" : ", " + more + " all") +
           " = while_loop(loop_vars = (int32(0), h0" + more_start + ")) {\nblock test(" + vars +
           ") { bool more = less(x = k, y = n); } -> (more);\nblock step(" + vars + ") { " + step + more_step +
           "} -> (after, next" + more_out + ");\n};\n";
  };
  const std::string inputs = "int32 n, tensor<fp16, [50, 1, 4]> x";
  ModelConfiguration c;
  c.threads = GetParam();
  const Model plain = Model::from_mil(
      program(inputs,
              start + loop("", "", "", "") +
                  "tensor<fp16, [1, 1, 8]> ys, tensor<fp16, [1, 8]> fused = gru(x = x, initial_h = h0, weight_ih = wi, "
                  "weight_hh = wh, reset_after = bool(true), output_sequence = bool(false));\n",
              "y, fused"),
      c);
  const Model listed = Model::from_mil(
      program(inputs,
              start + list +
                  " empty = make_list(init_length = int32(50), dynamic_length = bool(true), elem_shape = "
                  "(int32(1), int32(8)), dtype = string(\"fp16\"));\n" +
                  loop(list, ", empty", list + " longer = list_write(ls = l, index = k, value = next);\n", ", longer") +
                  "int32 last = sub(x = n, y = int32(1));\n" + row + "y_last = list_read(ls = all, index = last);\n",
              "y, y_last"),
      c);
  auto inputs_of = [&](int32_t n) {
    MultiArray count(DataType::int32, {1});
    count.as<int32_t>()[0] = n;
    std::vector<float> x;
    for (int i = 0; i < kSteps * kWidth; i++) x.push_back(static_cast<float>(i % 13) / 8 - 0.75f);
    return Features{{"n", count}, {"x", MultiArray::of(x, {kSteps, 1, kWidth})}};
  };
  Features few = inputs_of(10), many = inputs_of(kSteps), out, out_listed;
  plain.predict(few, out);
  EXPECT_EQ(count(plain, many, out), 0);
  const auto y = values(out.array("y")), fused = values(out.array("fused"));
  for (size_t i = 0; i < y.size(); i++) EXPECT_NEAR(y[i], fused[i], 1e-3) << i;

  const long of_few = count(listed, few, out_listed), of_many = count(listed, many, out_listed);
  EXPECT_EQ(values(out_listed.array("y_last")), y);
  EXPECT_EQ((of_many - of_few) % (kSteps - 10), 0);
  EXPECT_LE((of_many - of_few) / (kSteps - 10), 2);  // the element and its reference count
}

INSTANTIATE_TEST_SUITE_P(ThreadCounts, Allocation, testing::Values(1, 2), testing::PrintToStringParamName());

}  // namespace
}  // namespace moka::test

#endif
