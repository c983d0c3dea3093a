// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>

#include "ir/shape.h"
#include "ops/operation_util.h"

namespace moka {
namespace {

using ir::Constant;
using ir::DType;
using ir::NamedArg;
using ir::Shape;
using ir::Tensor;

Tensor ramp(const Shape& shape) {
  Tensor t = Tensor::zeros(DType::fp32, shape).value();
  for (int64_t i = 0; i < shape.count(); i++)
    t.mut<float>()[static_cast<size_t>(i)] = static_cast<float>((i * 37) % 101 - 50);
  return t;
}

Tensor vector_of(DType dtype, std::vector<int64_t> values) {
  Tensor t = Tensor::zeros(dtype, {static_cast<int64_t>(values.size())}).value();
  for (size_t i = 0; i < values.size(); i++) ir::store_i64(t.view(), static_cast<int64_t>(i), values[i]);
  return t;
}

/// `count` times the same number.
Tensor repeated(int count, int64_t value, DType dtype = DType::int32) {
  return vector_of(dtype, std::vector<int64_t>(static_cast<size_t>(count), value));
}

/// All axes of a tensor of this rank.
Tensor all_axes(int rank) {
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; i++) axes.push_back(i);
  return vector_of(DType::int32, axes);
}

/// Sizes 2, 4, 4, .. of this rank.
Shape sizes(int rank) {
  Shape s;
  for (int i = 0; i < rank; i++) s.push_back(i == 0 ? 2 : 4);
  return s;
}

struct Defaults {
  std::string op;
  int first_rank, last_rank;
  std::function<std::vector<NamedArg>(int rank)> given;     ///< the arguments that are required
  std::function<std::vector<NamedArg>(int rank)> defaults;  ///< the default arguments, written out
};

NamedArg arg(std::string name, Tensor value) { return {std::move(name), Constant(std::move(value))}; }
NamedArg x(int rank) { return arg("x", ramp(sizes(rank))); }
NamedArg text(std::string name, std::string value) { return arg(std::move(name), Tensor::text(std::move(value))); }

std::vector<NamedArg> window(int rank) {
  return {x(rank), arg("kernel_sizes", repeated(rank - 2, 2)), text("pad_type", "valid")};
}
std::vector<NamedArg> window_defaults(int rank) {
  return {arg("strides", repeated(rank - 2, 1)), arg("pad", repeated(2 * (rank - 2), 0))};
}

std::vector<NamedArg> filter(int rank) {
  Shape w = sizes(rank);
  w[0] = w[1] = 4;
  for (int i = 2; i < rank; i++) w[i] = 3;
  return {x(rank), arg("weight", ramp(w))};
}
std::vector<NamedArg> filter_defaults(int rank) {
  return {arg("strides", repeated(rank - 2, 1)), arg("dilations", repeated(rank - 2, 1)), text("pad_type", "valid"),
          arg("pad", repeated(2 * (rank - 2), 0))};
}

std::vector<NamedArg> only_x(int rank) { return {x(rank)}; }
std::vector<NamedArg> axes_of_all(int rank) { return {arg("axes", all_axes(rank))}; }

std::vector<NamedArg> last_axis(int rank) { return {arg("axis", Tensor::scalar_i64(DType::int32, rank - 1))}; }

const std::vector<Defaults>& table() {
  static const std::vector<Defaults> all = {
      {"conv", 3, 5, filter, filter_defaults},
      {"conv_transpose", 3, 5, filter, filter_defaults},
      {"max_pool", 3, 5, window, window_defaults},
      {"avg_pool", 3, 5, window, window_defaults},
      {"l2_pool", 3, 4, window, window_defaults},
      {"reduce_sum", 1, 5, only_x, axes_of_all},
      {"reduce_max", 1, 5, only_x, axes_of_all},
      {"reduce_l2_norm", 1, 5, only_x, axes_of_all},
      {"layer_norm", 1, 5, only_x, axes_of_all},
      {"reverse", 1, 5, only_x, axes_of_all},
      {"reduce_argmax", 1, 5, only_x, last_axis},
      {"argsort", 1, 5, only_x, last_axis},
      {"softmax", 1, 5, only_x, last_axis},
      {"slice_by_index", 1, 5,
       [](int rank) {
         return std::vector<NamedArg>{x(rank), arg("begin", repeated(rank, 1)), arg("end", repeated(rank, 2))};
       },
       [](int rank) {
         return std::vector<NamedArg>{arg("stride", repeated(rank, 1)),
                                      arg("begin_mask", repeated(rank, 0, DType::boolean)),
                                      arg("end_mask", repeated(rank, 0, DType::boolean)),
                                      arg("squeeze_mask", repeated(rank, 0, DType::boolean))};
       }},
      {"squeeze", 3, 5,
       [](int rank) {
         Shape s = sizes(rank);
         s[0] = s[2] = 1;
         return std::vector<NamedArg>{arg("x", ramp(s))};
       },
       [](int) {
         return std::vector<NamedArg>{arg("axes", vector_of(DType::int32, {0, 2}))};
       }},
  };
  return all;
}

class RankDefaults : public testing::TestWithParam<size_t> {};

TEST_P(RankDefaults, AreThoseWrittenOut) {
  const Defaults& d = table()[GetParam()];
  for (int rank = d.first_rank; rank <= d.last_rank; rank++) {
    SCOPED_TRACE(testing::Message() << d.op << " of rank " << rank);
    std::vector<NamedArg> written = d.given(rank);
    for (NamedArg& a : d.defaults(rank)) written.push_back(std::move(a));
    const Tensor absent = test::call(d.op, d.given(rank)), given = test::call(d.op, std::move(written));
    EXPECT_GT(given.count(), 0);
    EXPECT_EQ(absent, given);
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, RankDefaults, testing::Range<size_t>(0, table().size()),
                         [](const auto& i) { return table()[i.param].op; });

}  // namespace
}  // namespace moka
