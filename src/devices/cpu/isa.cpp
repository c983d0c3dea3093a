// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/isa.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <dnnl.hpp>

#include "base/error.h"
#include "base/instruction_set.h"

namespace moka::devices::cpu {

namespace {

/// The instruction set that oneDNN will use. oneDNN's own environment variable may limit it further.
Isa of_onednn() {
  const auto set = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  auto has = [set](dnnl::cpu_isa i) { return (set & static_cast<unsigned>(i)) == static_cast<unsigned>(i); };
  return has(dnnl::cpu_isa::avx512_core) ? Isa::avx512 : has(dnnl::cpu_isa::avx2) ? Isa::avx2 : Isa::base;
}

Isa limited() {
  const auto best = static_cast<Isa>(instruction_set());
  // oneDNN ignores this once it has created a primitive.
  if (is_instruction_set_limited())
    dnnl::set_max_cpu_isa(best == Isa::avx2 ? dnnl::cpu_isa::avx2 : dnnl::cpu_isa::sse41);
  return std::min(best, of_onednn());
}

}  // namespace

Isa isa() {
  static const Isa chosen = limited();
  return chosen;
}

bool has_vnni() {
#if defined(__x86_64__)
  // Not all compilers know the name "avxvnni", so ask the processor.
  unsigned a = 0, b = 0, c = 0, d = 0;
  switch (isa()) {
    case Isa::avx512: return __builtin_cpu_supports("avx512vnni");
    case Isa::avx2: return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
    case Isa::base: return false;
  }
#endif
  return false;
}

uint8_t channel_block() { return isa() == Isa::avx512 ? 16 : 8; }

int64_t l2_cache_bytes() {
  static const int64_t bytes = [] {
    constexpr int64_t kUsual = 512 << 10, kMost = 2 << 20;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    if (const int64_t n = ::sysconf(_SC_LEVEL2_CACHE_SIZE); n > 0) return std::min(n, kMost);
#endif
    return kUsual;
  }();
  return bytes;
}

namespace {

/// "AVX-512 VNNI BF16".
std::string set_names() {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::base: return "SSE";
    case Isa::avx2: return "AVX2";
    case Isa::avx512: {
      std::string text = "AVX-512";
      if (__builtin_cpu_supports("avx512vnni")) text += " VNNI";
      if (__builtin_cpu_supports("avx512bf16")) text += " BF16";
      return text;
    }
  }
#endif
  return "generic vectors";
}

std::string onednn_version() {
  const dnnl_version_t* v = dnnl::version();
  return cat("oneDNN ", v->major, ".", v->minor, ".", v->patch, " ", v->hash);
}

}  // namespace

std::string describe() {
  std::string text;
#if defined(__x86_64__)
  unsigned regs[12] = {};
  if (static_cast<unsigned>(__get_cpuid_max(0x80000000u, nullptr)) >= 0x80000004u) {
    for (unsigned i = 0; i < 3; i++)
      __get_cpuid(0x80000002u + i, &regs[4 * i], &regs[4 * i + 1], &regs[4 * i + 2], &regs[4 * i + 3]);
    char brand[49] = {};
    std::memcpy(brand, regs, 48);
    const char* start = brand;
    while (*start == ' ') start++;
    text = start;
    while (!text.empty() && text.back() == ' ') text.pop_back();
  }
  if (!text.empty()) text += ", ";
  text += set_names();
#else
  text = set_names();
#endif
  return text;
}

std::string identity() {
  std::string text = describe();
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) text += cat(", signature ", a);
#endif
  return cat(text, ", ", onednn_version());
}

std::string instruction_sets() {
  return cat(set_names(), has_vnni() ? " with" : " without", " dot products, ", onednn_version(), " for set ",
             static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
}

double flops_per_second() {
  switch (isa()) {
    case Isa::avx512: return 60e9;
    case Isa::avx2: return 30e9;
    case Isa::base: return 8e9;
  }
  return 8e9;
}

double bytes_per_second() { return 8e9; }

}  // namespace moka::devices::cpu
