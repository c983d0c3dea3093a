// SPDX-License-Identifier: Apache-2.0
#include "api/c_support.h"
#include "moka/moka.h"
#include "moka/shared_buffer.h"

using namespace moka::api;

struct moka_shared_buffer {
  moka::SharedBuffer buffer;
};

extern "C" {

moka_status moka_shared_buffer_new(size_t bytes, moka_shared_buffer** buffer) {
  return guarded([&] { need(buffer, "buffer") = new moka_shared_buffer{moka::SharedBuffer(bytes)}; });
}

moka_status moka_shared_buffer_open(int descriptor, uint64_t offset, size_t bytes, moka_shared_buffer** buffer) {
  return guarded(
      [&] { need(buffer, "buffer") = new moka_shared_buffer{moka::SharedBuffer::open(descriptor, offset, bytes)}; });
}

moka_status moka_shared_buffer_over(void* data, size_t bytes, moka_shared_buffer** buffer) {
  return guarded([&] { need(buffer, "buffer") = new moka_shared_buffer{moka::SharedBuffer::over(data, bytes)}; });
}

void moka_shared_buffer_free(moka_shared_buffer* buffer) { delete buffer; }

void* moka_shared_buffer_data(const moka_shared_buffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->buffer.data();
}

size_t moka_shared_buffer_bytes(const moka_shared_buffer* buffer) {
  return buffer == nullptr ? 0 : buffer->buffer.bytes();
}

int moka_shared_buffer_file_descriptor(const moka_shared_buffer* buffer) {
  return buffer == nullptr ? -1 : buffer->buffer.file_descriptor();
}

}  // extern "C"
