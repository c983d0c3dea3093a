// SPDX-License-Identifier: Apache-2.0
#include "format/age/stream.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/processors.h"

namespace moka::format::age {
namespace {

constexpr size_t kNonce = 16, kBlock = BlockSource::block_size;
using BlockNonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

/// The number of a block as 11 bytes, most significant first, and whether it is the last one.
BlockNonce nonce_of(uint64_t index, bool last) {
  BlockNonce out{};
  for (size_t i = 0; i < sizeof index; ++i) out[10 - i] = static_cast<unsigned char>(index >> (8 * i));
  out[11] = last ? 1 : 0;
  return out;
}

class Stream : public BlockSource {
 public:
  Stream(Bytes blocks, Secret key) : blocks_(std::move(blocks)), key_(std::move(key)) {
    count_ = (blocks_.size() + kBlock + kTag - 1) / (kBlock + kTag);
  }
  size_t size() const override { return blocks_.size() - count_ * kTag; }
  size_t count() const { return count_; }
  bool fill(size_t index, std::span<std::byte> to) const override {
    return open(index, reinterpret_cast<unsigned char*>(to.data()));
  }
  bool verify(size_t index) const { return open(index, nullptr); }

 private:
  bool open(size_t index, unsigned char* to) const {
    const size_t begin = index * (kBlock + kTag), size = std::min(kBlock + kTag, blocks_.size() - begin);
    if (size < kTag) return false;
    const auto* from = reinterpret_cast<const unsigned char*>(blocks_.data()) + begin;
    const BlockNonce nonce = nonce_of(index, index + 1 == count_);
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(to, nullptr, from, size - kTag, from + size - kTag,
                                                              nullptr, 0, nonce.data(), key_.data()) == 0;
  }

  const Bytes blocks_;
  const Secret key_;
  size_t count_;
};

/// The first block that is not authentic, or the number of blocks.
size_t first_bad(const Stream& stream) {
  constexpr size_t step = 64;
  const size_t count = stream.count();
  std::atomic<size_t> next{0}, bad{count};
  auto work = [&] {
    for (size_t begin; (begin = next.fetch_add(step)) < std::min(count, bad.load());)
      for (size_t i = begin; i < std::min(begin + step, count); ++i) {
        if (stream.verify(i)) continue;
        size_t known = bad.load();
        while (i < known && !bad.compare_exchange_weak(known, i)) {
        }
        break;
      }
  };
  const size_t threads = std::min<size_t>(static_cast<size_t>(processors()), count / step);
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  return bad;
}

}  // namespace

Result<std::shared_ptr<const BlockSource>> open_stream(const Bytes& file, size_t begin, const Secret& file_key) {
  if (file.size() - begin < kNonce + kTag)
    return fail(ErrorCode::malformed, "the encrypted file is cut off after its header");
  const Bytes nonce = file.slice(begin, kNonce);
  Secret key = derive({file_key.data(), file_key.size()},
                      {reinterpret_cast<const unsigned char*>(nonce.data()), kNonce}, "payload");
  auto stream = std::make_shared<Stream>(file.slice(begin + kNonce, file.size() - begin - kNonce), std::move(key));
  const size_t last = file.size() - begin - kNonce - (stream->count() - 1) * (kBlock + kTag);
  if (last < kTag || (last == kTag && stream->count() > 1))
    return fail(ErrorCode::malformed, "the encrypted file is cut off in block ", stream->count() - 1);
  if (const size_t bad = first_bad(*stream); bad < stream->count())
    return fail(ErrorCode::malformed, "block ", bad, " of ", stream->count(),
                " of the encrypted file was altered, or the file was cut off");
  return std::shared_ptr<const BlockSource>(std::move(stream));
}

Status write_stream(const Rope& content, const Secret& file_key, const Sink& sink) {
  std::array<unsigned char, kNonce> nonce;
  randombytes_buf(nonce.data(), nonce.size());
  const Secret key = derive({file_key.data(), file_key.size()}, nonce, "payload");
  MOKA_TRY(sink(std::as_bytes(std::span(nonce))));
  Secret plain(kBlock);
  std::vector<unsigned char> sealed(kBlock + kTag);
  uint64_t index = 0;
  size_t held = 0, left = content.size();
  auto seal = [&](bool last) -> Status {
    const BlockNonce block = nonce_of(index++, last);
    crypto_aead_chacha20poly1305_ietf_encrypt(sealed.data(), nullptr, plain.data(), held, nullptr, 0, nullptr,
                                              block.data(), key.data());
    const size_t size = held + kTag;
    held = 0;
    return sink(std::as_bytes(std::span(sealed).first(size)));
  };
  for (const Bytes& piece : content.pieces())
    for (size_t at = 0; at < piece.size();) {
      if (held == kBlock) MOKA_TRY(seal(false));
      const size_t size = std::min(kBlock - held, piece.size() - at);
      std::memcpy(plain.data() + held, piece.data() + at, size);
      held += size;
      at += size;
      left -= size;
    }
  if (left != 0) return fail(ErrorCode::internal, "the content of an encrypted file changed its size");
  return seal(true);
}

}  // namespace moka::format::age
