// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "import/onnx/node.h"

/// Fourier transforms as products with matrices of cosines and sines.
namespace moka::import::onnx {
namespace {

/// [rows, columns] of cos or sin of -+ 2 pi i j / length, divided by length for an inverse transform.
Value* matrix(const Node& n, const Value* like, int64_t rows, int64_t columns, int64_t length, bool sine,
              bool inverse) {
  constexpr int64_t most = 16384;
  if (length > most) n.unsupported(cat("a transform of ", length, " elements: expected at most ", most));
  Tensor t = need(Tensor::zeros(like->type.dtype(), Shape{rows, columns}));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const double angle = 2 * std::numbers::pi * static_cast<double>((i * j) % length) / static_cast<double>(length);
      const double v = sine ? (inverse ? std::sin(angle) : -std::sin(angle)) : std::cos(angle);
      ir::store_f64(t.view(), i * columns + j, inverse ? v / static_cast<double>(length) : v);
    }
  return n.constant(t);
}

/// The transform over the last axis of a real and an imaginary part (null: zero).
std::pair<Value*, Value*> transformed(const Node& n, Value* real, Value* imaginary, int64_t length, int64_t kept,
                                      bool inverse) {
  const int64_t have = real->type.shape()[n.rank(real) - 1], used = std::min(have, length);
  const int last = n.rank(real) - 1;
  if (used < have) real = n.slice(real, last, 0, used);
  if (used < have && imaginary != nullptr) imaginary = n.slice(imaginary, last, 0, used);
  Value* c = matrix(n, real, used, kept, length, false, inverse);
  Value* s = matrix(n, real, used, kept, length, true, inverse);
  Value *re = n.matmul(real, c), *im = n.matmul(real, s);
  if (imaginary == nullptr) return {re, im};
  return {n.sub(re, n.matmul(imaginary, s)), n.add(im, n.matmul(imaginary, c))};
}

Value* joined(const Node& n, Value* real, Value* imaginary) {
  return n.op("stack", {NamedArg("values", std::vector<Value*>{real, imaginary}), {"axis", n.rank(real)}});
}

void dft(Node& n) {
  Value* x = n.in(0);
  const Shape s = n.known_shape(x, "DFT");
  const int r = s.rank();
  const bool inverse = n.integer_or("inverse", 0) != 0, onesided = n.integer_or("onesided", 0) != 0;
  int64_t axis = n.opset < 20 ? n.integer_or("axis", 1) : n.has(2) ? n.integer(2, "axis") : -2;
  if (axis < 0) axis += r;
  if (axis < 0 || axis >= r - 1) n.malformed(cat("axis ", axis, " of an input of rank ", r));
  const int64_t length = n.has(1)              ? n.integer(1, "dft_length")
                         : onesided && inverse ? 2 * (s[static_cast<int>(axis)] - 1)
                                               : s[static_cast<int>(axis)];
  if (length < 1) n.malformed(cat("a length of ", length));
  const bool is_complex = s[r - 1] == 2;
  Value* real = n.squeeze(n.slice(x, r - 1, 0, 1), {r - 1});
  Value* imaginary = is_complex ? n.squeeze(n.slice(x, r - 1, 1, 2), {r - 1}) : nullptr;
  std::vector<int64_t> perm, back(static_cast<size_t>(r) - 1);
  for (int64_t i = 0; i < r - 1; ++i)
    if (i != axis) perm.push_back(i);
  perm.push_back(axis);
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  real = n.transpose(real, perm);
  if (imaginary != nullptr) imaginary = n.transpose(imaginary, perm);
  if (onesided && inverse) {
    // The other half of the spectrum of a real signal is the mirror image, conjugated.
    const int last = r - 2;
    const int64_t have = s[static_cast<int>(axis)], missing = length - have;
    if (missing < 0 || missing > have - 1) n.unsupported("a onesided inverse transform of another length");
    if (missing > 0) {
      const auto mirrored = [&](Value* v) {
        return n.op(
            "reverse",
            {{"x", n.slice(v, last, have - missing - (length % 2 == 0 ? 1 : 0), have - (length % 2 == 0 ? 1 : 0))},
             {"axes", Tensor::i32({last})}});
      };
      Value* mirror_real = mirrored(real);
      if (imaginary != nullptr) imaginary = n.concat({imaginary, n.mul(mirrored(imaginary), -1.0)}, last);
      real = n.concat({real, mirror_real}, last);
    }
    const auto out = transformed(n, real, imaginary, length, length, true);
    return n.set(0, n.expand_dims(n.transpose(out.first, back), {r - 1}));
  }
  const int64_t kept = onesided ? length / 2 + 1 : length;
  const auto out = transformed(n, real, imaginary, length, kept, inverse);
  n.set(0, joined(n, n.transpose(out.first, back), n.transpose(out.second, back)));
}

void stft(Node& n) {
  Value* x = n.in(0);
  const Shape s = n.known_shape(x, "STFT");
  const int64_t step = n.integer(1, "frame_step");
  Value* window = n.maybe(2);
  const int64_t length = n.has(3) ? n.integer(3, "frame_length") : window != nullptr ? window->type.shape()[0] : 0;
  const bool onesided = n.integer_or("onesided", 1) != 0;
  if (s.rank() == 3 && s[2] == 2) n.unsupported("a complex signal");
  if (length < 1 || step < 1 || length > s[1]) n.malformed(cat("frames of ", length, " elements, ", step, " apart"));
  Value* signal = s.rank() == 3 ? n.squeeze(x, {2}) : x;
  Value* frames =
      n.op("sliding_windows",
           {{"x", signal}, {"axis", 1}, {"size", static_cast<int>(length)}, {"stride", static_cast<int>(step)}});
  if (window != nullptr) frames = n.mul(frames, window);
  const auto out = transformed(n, frames, nullptr, length, onesided ? length / 2 + 1 : length, false);
  n.set(0, joined(n, out.first, out.second));
}

constexpr OperatorImport kSpectralOperators[] = {{"DFT", dft}, {"STFT", stft}};

}  // namespace

std::span<const OperatorImport> operators_spectral() { return kSpectralOperators; }

}  // namespace moka::import::onnx
