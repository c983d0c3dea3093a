// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/pairs.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"

/// Elementwise functions of integers and booleans.
namespace moka::devices::cpu {

namespace {

using vector::Booleans;
using vector::Integers;
using vector::loops;

struct IntegersEntry {
  std::string_view op;
  Integers f;
  bool compares = false;
};

constexpr IntegersEntry kIntegers[] = {{"add", Integers::add},
                                       {"sub", Integers::sub},
                                       {"mul", Integers::mul},
                                       {"maximum", Integers::max},
                                       {"minimum", Integers::min},
                                       {"equal", Integers::equal, true},
                                       {"not_equal", Integers::not_equal, true},
                                       {"less", Integers::less, true},
                                       {"less_equal", Integers::less_equal, true},
                                       {"greater", Integers::greater, true},
                                       {"greater_equal", Integers::greater_equal, true}};

Match match_integers(const MatchCall& m) {
  if (m.call.dtype("x") != ir::DType::int32) return Match::no(cat("element type ", m.call.dtype("x")));
  IntegersEntry entry;
  for (const IntegersEntry& e : kIntegers)
    if (e.op == m.call.version().def->name) entry = e;
  return match_pairs(m, "cpu.integers", 0, [entry](const PairRun& r) {
    void* out = entry.compares ? static_cast<void*>(r.out_as<uint8_t>()) : r.out_as<int32_t>();
    loops().integers(entry.f, r.x_as<int32_t>(), r.x_step, r.y_as<int32_t>(), r.y_step, out, r.n);
  });
}

Match match_booleans(const MatchCall& m) {
  const std::string_view op = m.call.version().def->name;
  const Booleans f = op == "logical_and" ? Booleans::both : op == "logical_or" ? Booleans::either : Booleans::one;
  return match_pairs(m, "cpu.booleans", 0, [f](const PairRun& r) {
    loops().booleans(f, r.x_as<uint8_t>(), r.x_step, r.y_as<uint8_t>(), r.y_step, r.out_as<uint8_t>(), r.n);
  });
}

Match match_logical_not(const MatchCall& m) {
  const Chunks chunks{m.outputs[0].shape().count()};
  KernelChoice c;
  c.kernel = "cpu.not";
  c.in_place = m.call.arg_index("x");
  c.tiles = chunks.tiles();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [chunks](const KernelArgs& args) -> Status {
    const uint8_t always = 1;
    const int64_t begin = chunks.first(args.begin), end = chunks.first(args.end);
    loops().booleans(Booleans::one, args.in[0].as<uint8_t>() + begin, 1, &always, 0, args.out[0].as<uint8_t>() + begin,
                     end - begin);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_integers() {
  static const KernelDef defs[] = {
      {.name = "cpu.integers",
       .ops = {"add", "sub", "mul", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater",
               "greater_equal"},
       .match = match_integers},
      {.name = "cpu.booleans", .ops = {"logical_and", "logical_or", "logical_xor"}, .match = match_booleans},
      {.name = "cpu.not", .ops = {"logical_not"}, .match = match_logical_not}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
