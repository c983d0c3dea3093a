// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "devices/gpu/use.h"

namespace moka::devices::gpu {

/// How buffers hold the elements of a tensor; the names of shaders' variants.
enum class Element : uint8_t { f32, f16, i32, u8 };
std::string_view name_of(Element e);
constexpr size_t size_of(Element e) { return e == Element::u8 ? 1 : e == Element::f16 ? 2 : 4; }

/// A dispatch in which an element of the result depends on one element of each input: a program of elementwise
/// functions over inputs that are broadcast. Where a program alone reads what another one writes, the recorder joins
/// both into one, which shaders/chain.glsl runs: its instructions are specialization constants, so that a driver
/// compiles them as straight code.
///
///     Chain c{.size = {n}, .inputs = {{x, {1}}}, .from = Element::f32, .to = Element::f32, .out = y};
///     c.add(F_EXP, c.input(0));
struct Chain {
  static constexpr size_t kRank = 3, kInputs = 6, kNodes = 12;
  static constexpr size_t kShort = 4;  ///< instructions of a program that shaders/chain_short.comp runs
  static constexpr uint32_t kNumber = kInputs + kNodes;  ///< an operand: the instruction's own number `x`
  static constexpr uint32_t kBinary = 64;  ///< a code of a binary function is this and its number (B_ADD...)

  struct Input {
    Use use;
    std::array<uint32_t, kRank> step{};  ///< in elements, along each dimension; 0: broadcast
  };
  /// A function of earlier values. Functions of one operand have the parameters x and y.
  struct Node {
    uint32_t code = 0, a = 0, b = 0;  ///< operands: input i as i, node i as kInputs + i, or kNumber
    float x = 0, y = 0;
  };

  std::array<uint32_t, kRank> size{1, 1, 1};  ///< of the result, the innermost dimension first
  std::vector<Input> inputs;
  std::vector<Node> nodes;                         ///< the result is the last one's; none: the first input itself
  Element from = Element::f32, to = Element::f32;  ///< all inputs, the result
  Use out;
  bool rounds = false;  ///< the program asks for the result in the type that it is stored in: nothing may skip that

  static uint32_t input(size_t i) { return static_cast<uint32_t>(i); }
  uint32_t last() const { return nodes.empty() ? 0 : static_cast<uint32_t>(kInputs + nodes.size() - 1); }
  void add(uint32_t function, uint32_t a, float x = 0, float y = 0) { nodes.push_back({function, a, 0, x, y}); }
  void add_binary(uint32_t function, uint32_t a, uint32_t b, float number = 0) {
    nodes.push_back({kBinary + function, a, b, number, 0});
  }
  uint64_t count() const { return uint64_t{size[0]} * size[1] * size[2]; }

  std::string shader() const;
  std::vector<uint32_t> constants() const;
  std::vector<Use> uses() const;  ///< one for each binding
};

/// Parameters of shaders/chain.glsl. They follow the offsets of the buffers.
struct ChainParams {
  uint32_t count;
  std::array<uint32_t, Chain::kRank> size;
  std::array<std::array<uint32_t, Chain::kRank>, Chain::kInputs> step;
  explicit ChainParams(const Chain& c);
};

/// One chain that computes what `later` does where it reads the result of `earlier` as its input `at`, element by
/// element. nullopt where it would be too large, the element types differ, or the dimensions cannot be matched.
std::optional<Chain> joined(const Chain& earlier, const Chain& later, size_t at);

}  // namespace moka::devices::gpu
