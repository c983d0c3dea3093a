// SPDX-License-Identifier: Apache-2.0
#include "moka/shared_buffer.h"

#include "base/shared_memory.h"
#include "boundary/arrays.h"

namespace moka {

struct SharedBuffer::Impl {
  std::shared_ptr<SharedMemory> memory;
};

SharedBuffer::SharedBuffer(size_t bytes) : impl_(new Impl{boundary::unwrap(SharedMemory::make(bytes))}) {}

SharedBuffer SharedBuffer::open(int descriptor, uint64_t offset, size_t bytes) {
  return SharedBuffer(std::shared_ptr<Impl>(new Impl{boundary::unwrap(SharedMemory::open(descriptor, offset, bytes))}));
}

SharedBuffer SharedBuffer::over(void* data, size_t bytes) {
  return SharedBuffer(std::shared_ptr<Impl>(new Impl{boundary::unwrap(SharedMemory::borrow(data, bytes))}));
}

std::byte* SharedBuffer::data() const { return impl_->memory->data(); }
size_t SharedBuffer::bytes() const { return impl_->memory->bytes(); }
int SharedBuffer::file_descriptor() const { return impl_->memory->file(); }
uint64_t SharedBuffer::offset() const { return impl_->memory->offset(); }

MultiArray SharedBuffer::array(DataType type, std::vector<int64_t> shape, size_t offset) const {
  if (offset > bytes())
    throw Exception(ErrorKind::invalid_argument, cat("shared buffer: an array at ", offset, " of ", bytes(), " bytes"));
  MultiArray made(data() + offset, type, std::move(shape), {}, impl_->memory);
  if (static_cast<size_t>(made.count()) > (bytes() - offset) / size_of(type))
    throw Exception(ErrorKind::invalid_argument, cat("shared buffer: an array of ", made.count(), " elements of ",
                                                     to_string(type), " at ", offset, " of ", bytes(), " bytes"));
  return made;
}

}  // namespace moka
