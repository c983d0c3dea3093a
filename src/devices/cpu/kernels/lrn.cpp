#include "devices/cpu/kernels/family.h"
#include "devices/cpu/onednn.h"

namespace moka::devices::cpu {

namespace {

using namespace onednn;

Match match_lrn(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x"}); !why.empty()) return Match::no(why);
  auto size = given.call.integer("size");
  auto alpha = given.call.number("alpha"), beta = given.call.number("beta"), k = given.call.number("k");
  if (!size.ok() || !alpha.ok() || !beta.ok() || !k.ok()) return Match::no("settings that are not constant");
  if (*size % 2 == 0) return Match::no("a window of even size");  // oneDNN places it differently
  const ir::Shape& x = given.call.shape("x");
  if (x.rank() != 4) return Match::no(cat("rank ", x.rank()));
  OneThread scope;
  for (Layout l : {layout_of(given, "x"), Layout{}}) {
    std::vector<Launch> launches;
    try {
      const auto parts = divide(x, l, x, l, 1, x[0] > 1 ? given.threads : 1);
      for (const Part& part : parts) {
        const Run run = input_of(part, x, l, 1);
        const dnnl::lrn_forward::desc d(dnnl::prop_kind::forward_inference, dnnl::algorithm::lrn_across_channels,
                                        describe(run.shape, l), *size, static_cast<float>(*alpha),
                                        static_cast<float>(*beta), static_cast<float>(*k));
        const dnnl::lrn_forward::primitive_desc pd(d, attributes(), engine(), true);
        if (pd.get(true) == nullptr || (is_plain_loops(pd) && !l.is_row_major())) break;
        Launch& launch = launches.emplace_back(pd);
        launch.in(DNNL_ARG_SRC, pd.src_desc(), given.call.arg_index("x"), run.first);
        launch.out(DNNL_ARG_DST, pd.dst_desc(), run.first);
      }
      if (launches.size() < parts.size()) continue;
      MatchCall m = given;
      m.threads = static_cast<int>(parts.size());
      KernelChoice c = choose("cpu.local_response_norm.onednn", launches, m);
      c.in = in_layouts(m, "x", l);
      if (m.epilogue.empty()) {
        c.out = {l};
      } else if (!l.is_row_major()) {
        continue;
      }
      c.cost = cost_of(m, 20.0 * static_cast<double>(x.count()), traffic(m));
      return Match::yes(std::move(c));
    } catch (const dnnl::error&) {
    }
  }
  return Match::no("no oneDNN implementation");
}

}  // namespace

KernelFamily family_lrn() {
  static const KernelDef defs[] = {
      {.name = "cpu.local_response_norm.onednn", .ops = {"local_response_norm"}, .match = match_lrn}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
