// SPDX-License-Identifier: Apache-2.0
#include "ops/common/attention.h"

#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

constexpr int64_t kBlock = 8;  // rows, keys and columns of an invocation of shaders/attention_block.glsl
constexpr uint32_t kRows = 16, kLanes = 16, kMostColumns = 16;  // shaders/attention.comp

struct AttentionParams {
  uint32_t rows, keys;
  float scale, hidden;
  uint32_t query_row, query_column, key_row, key_column, value_row, value_column, mask_row, mask_column, y_row;
  uint32_t inner;
  std::array<std::array<uint32_t, 2>, 5> steps;
};

/// Heads along at most two dimensions, the inner one first; false: along more.
bool set_heads(AttentionParams& p, const ops::AttentionHeads& heads) {
  std::array<int64_t, 2> sizes{1, 1};
  std::array<std::array<int64_t, 2>, 5> steps{};
  size_t n = 0;
  for (int d = heads.sizes.rank() - 1; d >= 0; d--) {
    const auto at = static_cast<size_t>(d);
    if (heads.sizes[d] == 1) continue;
    const bool follows = n > 0 && [&] {
      for (size_t m = 0; m < 5; m++)
        if (heads.steps[m][at] != steps[m][n - 1] * sizes[n - 1]) return false;
      return true;
    }();
    if (follows) {
      sizes[n - 1] *= heads.sizes[d];
      continue;
    }
    if (n == 2) return false;
    sizes[n] = heads.sizes[d];
    for (size_t m = 0; m < 5; m++) steps[m][n] = heads.steps[m][at];
    n++;
  }
  p.inner = u32(sizes[0]);
  for (size_t m = 0; m < 5; m++) p.steps[m] = {u32(steps[m][0]), u32(steps[m][1])};
  return true;
}

/// Whether the columns of a tensor's rows can be read in fours.
bool are_fours(const Use& use, uint32_t row, uint32_t column, const std::array<uint32_t, 2>& steps) {
  return use.offset % (4 * use.element) == 0 && column == 1 && row % 4 == 0 && steps[0] % 4 == 0 && steps[1] % 4 == 0;
}

Match match_attention(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"query", "key", "value", "attn_mask"}); !why.empty()) return Match::no(why);
  const bool views = m.call.version().def->name == "moka_attention";
  auto found = views ? ops::heads_of_views(m.call) : ops::heads_of_products(m.call, m.outputs[0].shape());
  if (!found.ok()) return Match::no(found.error().message());
  const ops::AttentionHeads& heads = *found;
  const ops::AttentionHead& h = heads.shared;

  const Element e = float_element(m);
  const bool masked = m.call.has("attn_mask");
  KernelChoice c = choice_of(m, "attention", {"query", "key", "value", "attn_mask"}, e);
  const int q = m.call.arg_index("query"), k = m.call.arg_index("key"), v = m.call.arg_index("value");
  const int mask = masked ? m.call.arg_index("attn_mask") : q;
  auto element = [&](int arg) {
    const auto at = static_cast<size_t>(arg);
    return *element_of(features_of(m), m.call.all_args()[at].type->dtype(), c.in[at]);
  };
  const Element mask_element = element(mask);
  // Keys and values may come from states, which are kept in float16.
  const Element kept = element(k);
  if (element(q) != e || element(v) != kept || (kept != e && mask_element != e))
    return Match::no("float16 and float32 mixed");

  AttentionParams p{u32(h.rows),
                    u32(h.keys),
                    static_cast<float>(h.scale),
                    static_cast<float>(h.hidden),
                    u32(h.query.row),
                    u32(h.query.column),
                    u32(h.key.row),
                    u32(h.key.column),
                    u32(h.value.row),
                    u32(h.value.column),
                    u32(h.mask.row),
                    u32(h.mask.column),
                    u32(h.out.row)};
  if (!set_heads(p, heads)) return Match::no("a batch of more than 2 dimensions");
  const uint32_t made = u32(h.made), columns = std::min((made + kLanes - 1) / kLanes, kMostColumns);
  const Features& card = features_of(m);
  const bool shares = card.shares_tiles();
  const int64_t rows = shares ? int64_t{kRows} : int64_t{card.block_size()};
  const int64_t made_in_group = shares ? int64_t{kLanes} * columns : kBlock * kBlock;
  const std::array<int64_t, 3> groups{(h.rows + rows - 1) / rows, (h.made + made_in_group - 1) / made_in_group,
                                      heads.count()};
  if (std::string why = features_of(m).refusal_of_groups(groups); !why.empty()) return Match::no(why);
  set_cost(c, m, static_cast<double>(heads.count() * h.rows * h.keys) * static_cast<double>(h.width + h.made));
  const Element other = kept != e ? kept : mask_element;
  const std::string shader =
      cat(shares ? "attention_" : "attention_block_", kept != e ? "kept_" : "",
          shares && kept == e ? tile_name_of(card, e) : name_of(e), other == e ? "" : cat("_", name_of(other)));
  const std::array<int64_t, 3> first{h.query.first, h.key.first, h.value.first};
  c.record = [=, &card, width = u32(h.width)](Recorder& recorder, const RecordArgs& args) -> Status {
    const std::vector<Use> uses{Use::read(view(args.in, q)).from(first[0]), Use::read(view(args.in, k)).from(first[1]),
                                Use::read(view(args.in, v)).from(first[2]),
                                masked ? Use::read(view(args.in, mask)) : Use::read(view(args.in, q)).unused(),
                                Use::write(args.out[0])};
    std::vector<uint32_t> constants{width, made, columns, masked};
    if (!shares) {
      const bool fours = width % 4 == 0 && are_fours(uses[0], p.query_row, p.query_column, p.steps[0]) &&
                         are_fours(uses[1], p.key_row, p.key_column, p.steps[1]);
      const bool value_fours = made % 4 == 0 && are_fours(uses[2], p.value_row, p.value_column, p.steps[2]);
      const uint32_t teams = card.block_size() / kBlock;
      const uint32_t mask_kind = !masked ? MASK_NONE : p.mask_row == 0 ? MASK_OF_KEYS : MASK_OF_ROWS;
      constants = {width,
                   made,
                   mask_kind,
                   fours ? 4u : 1u,
                   value_fours,
                   teams,
                   card.blocks_are_subgroups(),
                   teams * u32(kBlock)};
    }
    return recorder_of(recorder).dispatch(shader, std::move(constants), uses, p, groups_of(groups));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_attention() {
  static const KernelDef defs[] = {{"attention", {"scaled_dot_product_attention", "moka_attention"}, match_attention}};
  return {defs};
}

}  // namespace moka::devices::gpu
