// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

struct FlipParams {
  uint32_t count, rows, columns, taps;
};

Match match_flip_weights(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"weight"}); !why.empty()) return Match::no(why);
  const auto groups = m.call.integer("groups");
  if (!groups.ok()) return Match::no("groups that are not constant");
  const ir::Shape& w = m.call.shape("weight");
  const FlipParams params{u32(w.count()), u32(w[0] / *groups), u32(w[1]), u32(w.count(2, w.rank()))};
  const Element e = moved_element(m, "weight");
  const int in = m.call.arg_index("weight");
  KernelChoice c = choice_of(m, "flip_weights", {"weight"}, e);
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(cat("flip_weights_u", 8 * size_of(e)), {},
                                          {Use::read(view(args.in, in)), Use::write(args.out[0])}, params,
                                          CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_flip_weights() {
  static const KernelDef defs[] = {{"flip_weights", {"moka_flip_weights"}, match_flip_weights}};
  return {defs};
}

}  // namespace moka::devices::gpu
