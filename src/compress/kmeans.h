#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace moka::compress {

/// At most `count` centers of the values in ascending order, which make the sum of squared distances small: optimal for
/// up to 16384 different values, else optimal for 16384 groups of neighbors and then improved on all values until
/// nothing changes (Lloyd).
std::vector<float> centers_of(std::span<const float> values, size_t count);

/// The index of the nearest of ascending centers.
uint8_t nearest(std::span<const float> centers, float value);

/// At most `count` centers of vectors of `size` numbers each, from at most 65536 of them: the best of up to 64 trials
/// that are seeded far apart and improved up to 50 times. The same values give the same centers.
std::vector<float> vector_centers(std::span<const float> vectors, size_t size, size_t count);
/// The index of the nearest of `centers`, each of the vector's size.
uint8_t nearest_vector(std::span<const float> centers, std::span<const float> vector);

}  // namespace moka::compress
