#include "devices/cpu/common/broadcast.h"
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

/// A choice that calls f(offset in the result, {offset in each of x and y}, {their steps}, n, arguments).
template <class F>
Match of_pairs(const MatchCall& m, std::string_view kernel, F f) {
  const ir::Shape out = m.outputs[0].shape();
  if (out.count() == 0) return Match::no("an empty tensor");
  const ir::Shape shapes[] = {m.call.shape("x"), m.call.shape("y")};
  const int x = m.call.arg_index("x"), y = m.call.arg_index("y");
  const Chunks chunks{out.count()};
  KernelChoice c;
  c.kernel = kernel;
  if (m.call.dtype("x") == m.outputs[0].dtype()) c.in_place = shapes[0] == out ? x : shapes[1] == out ? y : -1;
  c.tiles = chunks.tiles();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [=, walk = Broadcast::of(out, shapes)](const KernelArgs& args) -> Status {
    const ir::TensorView &a = args.in[static_cast<size_t>(x)], &b = args.in[static_cast<size_t>(y)];
    walk.each(chunks.first(args.begin), chunks.first(args.end), [&](int64_t first, const auto& from, int64_t n) {
      f(a, from[0], walk.step(0), b, from[1], walk.step(1), args.out[0], first, n);
    });
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_integers(const MatchCall& m) {
  if (m.call.dtype("x") != ir::DType::int32) return Match::no(cat("element type ", m.call.dtype("x")));
  IntegersEntry entry;
  for (const IntegersEntry& e : kIntegers)
    if (e.op == m.call.version().def->name) entry = e;
  return of_pairs(m, "cpu.integers",
                  [f = entry.f, size = entry.compares ? 1 : 4](const ir::TensorView& a, int64_t i, int a_step,
                                                               const ir::TensorView& b, int64_t j, int b_step,
                                                               const ir::TensorView& y, int64_t at, int64_t n) {
                    loops().integers(f, a.as<int32_t>() + i, a_step, b.as<int32_t>() + j, b_step,
                                     y.as<std::byte>() + at * size, n);
                  });
}

Match match_booleans(const MatchCall& m) {
  const std::string_view op = m.call.version().def->name;
  const Booleans f = op == "logical_and" ? Booleans::both : op == "logical_or" ? Booleans::either : Booleans::one;
  return of_pairs(m, "cpu.booleans",
                  [f](const ir::TensorView& a, int64_t i, int a_step, const ir::TensorView& b, int64_t j, int b_step,
                      const ir::TensorView& y, int64_t at, int64_t n) {
                    loops().booleans(f, a.as<uint8_t>() + i, a_step, b.as<uint8_t>() + j, b_step, y.as<uint8_t>() + at,
                                     n);
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
