// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

struct Reason {
  std::string_view op, reason;
};

constexpr std::string_view kState = "a state, which the host keeps", kRandom = "random numbers, which the host draws",
                           kSize = "a result whose size is known only while running",
                           kList = "a list, which the host keeps";

/// Operations that stay on the host, and why.
constexpr Reason kReasons[] = {{"coreml_update_state", kState},
                               {"read_state", kState},
                               {"write_state", kState},
                               {"random_bernoulli", kRandom},
                               {"random_categorical", kRandom},
                               {"random_normal", kRandom},
                               {"random_uniform", kRandom},
                               {"non_zero", kSize},
                               {"range_1d", kSize},
                               {"make_list", kList},
                               {"list_gather", kList},
                               {"list_length", kList},
                               {"list_read", kList},
                               {"list_scatter", kList},
                               {"list_write", kList},
                               {"non_maximum_suppression", "boxes that are chosen one after the other"}};

Match refuse(const MatchCall& m) {
  for (const Reason& r : kReasons)
    if (r.op == m.call.version().def->name) return Match::no(std::string(r.reason));
  return Match::no("an operation of the host");
}

}  // namespace

KernelFamily family_host() {
  static const auto* names = [] {
    auto* v = new std::vector<std::string_view>;
    for (const Reason& r : kReasons) v->push_back(r.op);
    return v;
  }();
  static const KernelDef defs[] = {{"none", *names, refuse}};
  return {defs};
}

}  // namespace moka::devices::gpu
