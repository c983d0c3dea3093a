#include "devices/cpu/common/broadcast.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

namespace {

using vector::Binary;
using vector::Integers;
using vector::loops;

Match match_division(const MatchCall& m) {
  const ir::DType dtype = m.call.dtype("x");
  const ir::Shape out = m.outputs[0].shape();
  if (dtype != ir::DType::fp32 && dtype != ir::DType::int32) return Match::no(cat("element type ", dtype));
  if (out.count() == 0) return Match::no("an empty tensor");
  const bool quotient = m.call.version().def->name == "floor_div";
  const ir::Shape shapes[] = {m.call.shape("x"), m.call.shape("y")};
  const Chunks chunks{out.count()};
  const auto x = static_cast<size_t>(m.call.arg_index("x")), y = static_cast<size_t>(m.call.arg_index("y"));
  KernelChoice c;
  c.kernel = "cpu.division";
  c.in_place = shapes[0] == out ? static_cast<int>(x) : shapes[1] == out ? static_cast<int>(y) : -1;
  c.tiles = chunks.tiles();
  constexpr double kEach = 10;  // floating-point operations in the time of one quotient
  c.cost = cost_of(m, kEach * static_cast<double>(out.count()), traffic(m));
  c.run = [=, walk = Broadcast::of(out, shapes)](const KernelArgs& args) -> Status {
    walk.each(chunks.first(args.begin), chunks.first(args.end), [&](int64_t first, const auto& from, int64_t n) {
      if (dtype == ir::DType::fp32)
        loops().binary(quotient ? Binary::floor_div : Binary::mod, args.in[x].as<float>() + from[0], walk.step(0),
                       args.in[y].as<float>() + from[1], walk.step(1), args.out[0].as<float>() + first, n);
      else
        loops().integers(quotient ? Integers::floor_div : Integers::mod, args.in[x].as<int32_t>() + from[0],
                         walk.step(0), args.in[y].as<int32_t>() + from[1], walk.step(1),
                         args.out[0].as<int32_t>() + first, n);
    });
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_division() {
  static const KernelDef defs[] = {{.name = "cpu.division", .ops = {"floor_div", "mod"}, .match = match_division}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
