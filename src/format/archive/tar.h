// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "format/write_files.h"

namespace moka::format {

/// Whether the bytes begin with the header of a tar archive.
bool is_tar(const Bytes& bytes);

/// The regular files of a tar archive (ustar, pax, GNU long names), by normalized name. Reads only the headers. Errors:
/// malformed (names the byte), unsupported (links, devices, sparse files).
Result<std::map<std::string, Bytes>> read_tar(const Bytes& archive);

/// A tar archive (pax) of these files, without times or owners. The same files give the same archive.
Rope write_tar(const FileContents& files);

}  // namespace moka::format
