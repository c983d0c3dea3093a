// SPDX-License-Identifier: Apache-2.0
// Input: a byte that chooses what to do, then an encrypted file, or the content of one, or an archive.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "format/age/age.h"
#include "format/age/armor.h"
#include "format/archive/tar.h"

namespace {

using namespace moka;
using namespace moka::format;

constexpr const char* kIdentity = "AGE-SECRET-KEY-1J79XPVAH9L9GJ6VDJXRH8MV706572VE9ZV8WJFX00ZUDXL8KZRAQ23RVJS";

Result<std::string> key(age::Wanted wanted) {
  return std::string(wanted == age::Wanted::identity ? kIdentity : "passphrase");
}

/// A valid header for the content, so that mutations reach what is behind it.
Bytes sealed(const Bytes& content) {
  std::string out;
  age::Lock lock;
  lock.recipients = age::read_recipients("age1uzdfz0uhqyse5fq7ua2mjguectcsfxn89vd2qdp4ppfh345fvpwqtxaevd").value();
  (void)age::encrypt(Rope(content), lock, [&](std::span<const std::byte> part) -> Status {
    out.append(reinterpret_cast<const char*>(part.data()), part.size());
    return {};
  }).ok();
  return Bytes::from(std::move(out));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes rest = Bytes::copy_of(std::as_bytes(std::span(data + 1, size - 1)));
  MemoryBudget budget(size_t{16} << 20);
  switch (data[0] % 4) {
    case 0: {
      const auto opened = age::open(rest, key, &budget);
      if (opened.ok()) (void)Bytes::copy_of(opened->span);
      break;
    }
    case 1: {
      const auto opened = age::open(sealed(rest), key, &budget);
      if (!opened.ok() || opened->text() != rest.text()) std::abort();
      break;
    }
    case 2:
      if (const auto files = read_tar(rest); files.ok())
        for (const auto& [name, content] : *files)
          if (content.data() < rest.data() || content.data() + content.size() > rest.data() + rest.size()) std::abort();
      break;
    default:
      (void)age::read_identities(rest.text()).ok();
      (void)age::read_recipients(rest.text()).ok();
      (void)age::read_armor(rest).ok();
  }
  return 0;
}
