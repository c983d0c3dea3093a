// SPDX-License-Identifier: Apache-2.0
#include "moka/output.h"

#include "api/internal.h"
#include "base/replace_file.h"
#include "boundary/path.h"

namespace moka {
namespace {

static_assert(static_cast<int>(FileKind::capture) == static_cast<int>(OutputKind::capture));
OutputKind internal(FileKind kind) { return static_cast<OutputKind>(kind); }

}  // namespace

std::optional<OutputRefusal> refused_output(const std::filesystem::path& path, FileKind kind,
                                            const std::vector<std::filesystem::path>& inputs) {
  auto refused = refusal(boundary::native(path), internal(kind), boundary::native(inputs));
  if (!refused) return std::nullopt;
  return OutputRefusal{std::move(refused->reason), refused->can_force};
}

void write_file(const std::filesystem::path& path, FileKind kind, std::span<const std::byte> content,
                Overwrite overwrite) {
  api::unwrap(replace_file(boundary::native(path), internal(kind), {&content, 1}, false, overwrite == Overwrite::any));
}

}  // namespace moka
