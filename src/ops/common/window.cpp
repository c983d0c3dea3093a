// SPDX-License-Identifier: Apache-2.0
#include "ops/common/window.h"

#include <algorithm>

#include "ops/common/common.h"

namespace moka::ops {

namespace {

constexpr int64_t kLargest = int64_t{1} << 40;  // largest size; sums and strided ends then fit in 64 bits

Ints repeat(int64_t v, int n) {
  Ints out;
  for (int i = 0; i < n; ++i) out.push_back(v);
  return out;
}

/// The `n` integers of a parameter, each at least `lowest`. If it is absent, each is `fallback`.
Result<Ints> settings(const OpCall& call, std::string_view param, int n, int64_t lowest, int64_t fallback) {
  if (!call.is_known(param) && !call.has(param)) return repeat(fallback, n);
  Ints v = MOKA_TRY(call.ints(param));
  if (v.size() != n) return call.error(param, cat(n, " integers"), cat(v.size()));
  for (int64_t x : v) {
    if (x < lowest || x > INT32_MAX) return call.error(param, cat("integers from ", lowest, " to ", INT32_MAX), cat(x));
  }
  return v;
}

enum class Pad { valid, same, same_lower, custom };

Result<Pad> pad_type(const OpCall& call, bool lower_allowed) {
  std::string_view text = MOKA_TRY(call.text("pad_type"));
  if (text == "valid") return Pad::valid;
  if (text == "same") return Pad::same;
  if (text == "custom") return Pad::custom;
  if (text == "same_lower" && lower_allowed) return Pad::same_lower;
  return call.error("pad_type", lower_allowed ? "valid, same, same_lower or custom" : "valid, same or custom",
                    cat("'", text, "'"));
}

/// Checks x and fills `rank` and `in`.
Status read_input(const OpCall& call, int max_rank, Window& w) {
  const Shape& x = call.shape("x");
  w.rank = x.rank() - 2;
  if (w.rank < 1 || w.rank > max_rank) {
    return call.error("x", cat("rank 3 to ", max_rank + 2), cat("rank ", x.rank(), " (", x, ")"));
  }
  for (int i = 0; i < w.rank; ++i) {
    if (x[i + 2] > kLargest) return call.error("x", cat("sizes up to ", kLargest), cat(x));
    w.in.push_back(x[i + 2]);
  }
  return {};
}

Status read_kernel(const OpCall& call, Window& w) {
  const Shape& weight = call.shape("weight");
  if (weight.rank() != w.rank + 2) {
    return call.error("weight", cat("rank ", w.rank + 2, " as x"), cat("rank ", weight.rank(), " (", weight, ")"));
  }
  for (int i = 0; i < w.rank; ++i) {
    int64_t k = weight[i + 2];
    if (k == 0 || k > INT32_MAX) return call.error("weight", cat("kernel sizes from 1 to ", INT32_MAX), cat(weight));
    w.kernel.push_back(k < 0 ? kAnyDim : k);
  }
  w.strides = MOKA_TRY(settings(call, "strides", w.rank, 1, 1));
  w.dilations = MOKA_TRY(settings(call, "dilations", w.rank, 1, 1));
  w.groups = MOKA_TRY(call.integer("groups"));
  if (w.groups < 1) return call.error("groups", "1 or more", cat(w.groups));
  for (int i = 0; i < w.rank; ++i) {
    if (w.kernel[i] > 0 && (w.kernel[i] - 1) > kLargest / w.dilations[i]) {
      return call.error("dilations", cat("a dilated kernel of at most ", kLargest), cat(w.dilations[i]));
    }
  }
  return {};
}

/// `channels` may be unknown.
Status check_bias(const OpCall& call, int64_t channels) {
  if (!call.has("bias")) return {};
  const Type& t = call.type("bias");
  if (!t.is_ranked()) return {};
  const Shape& s = t.shape();
  if (s.rank() != 1 || (s[0] >= 0 && channels >= 0 && s[0] != channels)) {
    return call.error(
        "bias",
        channels >= 0 ? cat("shape [", channels, "], one value per output channel") : std::string("one dimension"),
        cat(s));
  }
  return {};
}

/// Computes pads and output size of dimension i by the padding rule. Everything must be concrete.
Status slide(const OpCall& call, Pad pad, const Ints& custom, bool ceil_mode, int i, Window& w) {
  const int64_t in = w.in[i], stride = w.strides[i], extent = w.extent(i);
  int64_t begin = 0, total = 0;
  if (pad == Pad::same || pad == Pad::same_lower) {
    const int64_t want = (in + stride - 1) / stride;
    total = std::max<int64_t>(0, (want - 1) * stride + extent - in);
    begin = pad == Pad::same ? total / 2 : total - total / 2;
  } else if (pad == Pad::custom) {
    begin = custom[2 * i];
    total = begin + custom[2 * i + 1];
  }
  const int64_t room = in + total - extent;
  int64_t out = 0;
  if (ceil_mode) {
    const int64_t raised = room + stride - 1;
    out = raised < 0 ? 0 : raised / stride + 1;
    if (out > 0 && total > 0 && (out - 1) * stride >= in + begin) --out;
  } else {
    out = room < 0 ? 0 : room / stride + 1;
  }
  if (out < 1) {
    return call.error(cat("the window of ", extent, " does not fit in spatial dimension ", i, " of ", in,
                          " elements and ", total, " of padding"));
  }
  w.out[i] = out;
  w.pads_begin[i] = begin;
  w.pads_end[i] = (out - 1) * stride + extent - in - begin;
  return {};
}

/// Whether the output has the size of the input, even if that size is unknown.
bool keeps_size(Pad pad, const Ints& custom, int i, const Window& w) {
  if (w.strides[i] != 1) return false;
  if (pad == Pad::same || pad == Pad::same_lower) return true;
  if (w.kernel[i] < 0) return false;
  const int64_t total = pad == Pad::custom ? custom[2 * i] + custom[2 * i + 1] : 0;
  return total == w.extent(i) - 1;
}

Status slide_all(const OpCall& call, Pad pad, const Ints& custom, bool ceil_mode, Window& w) {
  w.out = repeat(kAnyDim, w.rank);
  w.pads_begin = w.pads_end = repeat(0, w.rank);
  for (int i = 0; i < w.rank; ++i) {
    if (w.in[i] < 0 || w.kernel[i] < 0) {
      if (keeps_size(pad, custom, i, w)) w.out[i] = w.in[i];
      continue;
    }
    MOKA_TRY(slide(call, pad, custom, ceil_mode, i, w));
  }
  return {};
}

/// The product may wrap, because the sizes of an empty tensor can have any product.
int64_t product_of(const Ints& v) {
  uint64_t n = 1;
  for (int64_t x : v) n *= static_cast<uint64_t>(x);
  return static_cast<int64_t>(n);
}

}  // namespace

int64_t Window::taps() const { return product_of(kernel); }
int64_t Window::in_count() const { return product_of(in); }
int64_t Window::out_count() const { return product_of(out); }

Window Window::as(int dimensions) const {
  Window w;
  w.rank = dimensions;
  w.groups = groups;
  auto widen = [&](const Ints& v, int64_t fill) {
    Ints o;
    for (int i = rank; i < dimensions; ++i) o.push_back(fill);
    for (int64_t x : v) o.push_back(x);
    return o;
  };
  w.in = widen(in, 1);
  w.out = widen(out, 1);
  w.kernel = widen(kernel, 1);
  w.strides = widen(strides, 1);
  w.dilations = widen(dilations, 1);
  w.pads_begin = widen(pads_begin, 0);
  w.pads_end = widen(pads_end, 0);
  return w;
}

Result<Window> conv_window(const OpCall& call) {
  Window w;
  MOKA_TRY(read_input(call, 3, w));
  MOKA_TRY(read_kernel(call, w));
  const int64_t channels = call.shape("x")[1], taken = call.shape("weight")[1], made = call.shape("weight")[0];
  if (channels >= 0 && channels % w.groups != 0) {
    return call.error("groups", cat("a divisor of the ", channels, " input channels"), cat(w.groups));
  }
  if (made >= 0 && made % w.groups != 0) {
    return call.error("groups", cat("a divisor of the ", made, " output channels"), cat(w.groups));
  }
  if (channels >= 0 && taken >= 0 && channels / w.groups != taken) {
    return call.error("weight", cat("dimension 1 of ", channels / w.groups, ", input channels by groups"),
                      cat(call.shape("weight")));
  }
  MOKA_TRY(check_bias(call, made));
  const Pad pad = MOKA_TRY(pad_type(call, true));
  Ints custom;
  if (pad == Pad::custom) custom = MOKA_TRY(settings(call, "pad", 2 * w.rank, 0, 0));
  MOKA_TRY(slide_all(call, pad, custom, false, w));
  return w;
}

Result<Window> conv_transpose_window(const OpCall& call) {
  Window w;
  MOKA_TRY(read_input(call, 3, w));
  MOKA_TRY(read_kernel(call, w));
  const Shape& x = call.shape("x");
  const Shape& weight = call.shape("weight");
  if (x[1] >= 0 && weight[0] >= 0 && x[1] != weight[0]) {
    return call.error("weight", cat("dimension 0 of ", x[1], ", the input channels"), cat(weight));
  }
  const int64_t channels = std::max(x[1], weight[0]);
  if (channels >= 0 && channels % w.groups != 0) {
    return call.error("groups", cat("a divisor of the ", channels, " input channels"), cat(w.groups));
  }
  if (weight[1] > kLargest / w.groups)
    return call.error("weight", cat("up to ", kLargest, " output channels"), cat(weight));
  const int64_t made = weight[1] < 0 ? kAnyDim : weight[1] * w.groups;
  MOKA_TRY(check_bias(call, made));
  const Pad pad = MOKA_TRY(pad_type(call, false));
  Ints custom;
  if (pad == Pad::custom) custom = MOKA_TRY(settings(call, "pad", 2 * w.rank, 0, 0));
  Ints wanted;
  if (call.has("output_shape")) {
    wanted = MOKA_TRY(call.ints("output_shape"));
    if (wanted.size() != w.rank + 2 || (x[0] >= 0 && wanted[0] != x[0]) || (made >= 0 && wanted[1] != made)) {
      return call.error("output_shape",
                        cat(w.rank + 2, " sizes beginning with batch and output channels (", x[0], ", ", made, ")"),
                        cat(Shape(std::span<const int64_t>(wanted.begin(), std::min(wanted.size(), kMaxRank)))));
    }
  }
  w.out = repeat(kAnyDim, w.rank);
  w.pads_begin = w.pads_end = repeat(0, w.rank);
  for (int i = 0; i < w.rank; ++i) {
    if (!wanted.empty()) w.out[i] = wanted[i + 2];
    if (w.in[i] < 0 || w.kernel[i] < 0) {
      if (wanted.empty() && keeps_size(pad, custom, i, w)) w.out[i] = w.in[i];
      continue;
    }
    if (w.in[i] == 0) return call.error("x", "spatial sizes of at least 1", cat(x));
    if (w.in[i] > kLargest / w.strides[i])
      return call.error("x", cat("a result of at most ", kLargest, " elements"), cat(x));
    const int64_t full = (w.in[i] - 1) * w.strides[i] + w.extent(i);
    if (wanted.empty()) {
      if (pad == Pad::same) w.out[i] = w.in[i] * w.strides[i];
      if (pad == Pad::valid) w.out[i] = full;
      if (pad == Pad::custom) w.out[i] = full - custom[2 * i] - custom[2 * i + 1];
    }
    if (w.out[i] < 1) {
      return call.error(cat("spatial dimension ", i, " of the result would have ", w.out[i], " elements"));
    }
    if (pad == Pad::same) w.pads_begin[i] = std::max<int64_t>(0, full - w.out[i]) / 2;
    if (pad == Pad::custom) w.pads_begin[i] = custom[2 * i];
    w.pads_end[i] = full - w.out[i] - w.pads_begin[i];
  }
  return w;
}

Result<Window> pool_window(const OpCall& call, int max_rank) {
  Window w;
  MOKA_TRY(read_input(call, max_rank, w));
  w.kernel = MOKA_TRY(settings(call, "kernel_sizes", w.rank, 1, 1));
  w.strides = MOKA_TRY(settings(call, "strides", w.rank, 1, 1));
  w.dilations = repeat(1, w.rank);
  const Pad pad = MOKA_TRY(pad_type(call, true));
  const Ints custom = MOKA_TRY(settings(call, "pad", 2 * w.rank, 0, 0));
  const bool ceil_mode = MOKA_TRY(call.flag("ceil_mode"));
  if (ceil_mode) {
    if (w.rank > 2) return call.error("ceil_mode", "false with three spatial dimensions", "true");
    if (pad == Pad::same) return call.error("ceil_mode", "false when pad_type is same", "true");
    for (int i = 0; i < w.rank; ++i) {
      if (custom[2 * i] != custom[2 * i + 1]) {
        return call.error("pad", "equal padding before and after when ceil_mode is true",
                          cat(custom[2 * i], " and ", custom[2 * i + 1]));
      }
    }
  }
  MOKA_TRY(slide_all(call, pad, custom, ceil_mode, w));
  return w;
}

Result<Window> weights_gradient_window(const OpCall& call) {
  Window w;
  w.rank = call.rank("x") - 2;
  for (int i = 0; i < w.rank; i++) {
    w.in.push_back(call.shape("x")[i + 2]);
    w.out.push_back(call.shape("dy")[i + 2]);
  }
  w.kernel = MOKA_TRY(call.ints("kernel"));
  w.strides = MOKA_TRY(call.ints("strides"));
  w.dilations = MOKA_TRY(call.ints("dilations"));
  w.pads_begin = MOKA_TRY(call.ints("pad"));
  w.pads_end = repeat(0, w.rank);
  w.groups = MOKA_TRY(call.integer("groups"));
  return w;
}

TapReach tap_reach(const Window& w, int i, int64_t tap) {
  const int64_t base = tap * w.dilations[i] - w.pads_begin[i];
  const int64_t first = base >= 0 ? 0 : (-base + w.strides[i] - 1) / w.strides[i];
  const int64_t last = base >= w.in[i] ? 0 : (w.in[i] - 1 - base) / w.strides[i] + 1;
  return {first, std::min(last, w.out[i]), base};
}

}  // namespace moka::ops
