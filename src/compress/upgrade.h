// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source.h"

namespace moka::compress {

/// Rewrites the palettized and sparse weights of programs for iOS 16 and 17 as operations of iOS 18, whose parameters
/// differ. The values stay the same. If it rewrites any, it moves all weights of the model's programs into one file.
/// Error malformed.
Status upgrade_forms(format::ModelSource& source);
/// Calls upgrade_forms if one of the model's programs is for iOS 18 or later. Programs of a pipeline can be merged
/// then.
Status unify_forms(format::ModelSource& source);

}  // namespace moka::compress
