// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace moka::compress {

/// At most `count` centers of the values in ascending order, with a small sum of squared distances. Up to 16384
/// different values, the sum is the least possible. For more values, it is the least for 16384 groups of neighbors;
/// Lloyd's algorithm then improves the centers on all values until nothing changes.
std::vector<float> centers_of(std::span<const float> values, size_t count);

/// The index of the nearest of ascending centers.
uint8_t nearest(std::span<const float> centers, float value);

/// At most `count` centers of vectors with `size` numbers each. Uses at most 65536 of the vectors. Up to 64 trials
/// begin with centers that are far apart and improve them up to 50 times; the best trial wins. The same vectors always
/// give the same centers.
std::vector<float> vector_centers(std::span<const float> vectors, size_t size, size_t count);
/// The index of the nearest of `centers`, each of the vector's size.
uint8_t nearest_vector(std::span<const float> centers, std::span<const float> vector);

}  // namespace moka::compress
