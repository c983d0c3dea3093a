#pragma once

#include "format/source.h"

namespace moka::compress {

/// Writes palettes and sparse weights of programs for iOS 16 and 17 in the forms of iOS 18, which have other
/// parameters. The numbers stay the same. Puts all weights of programs into one file if there are any. Error malformed.
Status upgrade_forms(format::ModelSource& source);
/// The same if a program of the model is for iOS 18, so that programs can become one.
Status unify_forms(format::ModelSource& source);

}  // namespace moka::compress
