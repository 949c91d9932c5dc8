#include "seal/aead.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "seal/hex.hpp"
#include "seal/ipsec_mb.hpp"
#include "seal/libcrypto.hpp"

namespace fairlead::seal {
namespace {

std::vector<std::byte> octets_of(std::string_view hex) {
  std::vector<std::byte> bytes(hex.size() / 2);
  EXPECT_TRUE(from_hex(hex, bytes));
  return bytes;
}

/// From the specification of GCM (McGrew and Viega), appendix B, test cases 1, 2 and 4.
struct GcmVector {
  std::string_view key, nonce, associated, plain, sealed;
};
constexpr GcmVector kGcmVectors[] = {
    {"00000000000000000000000000000000", "000000000000000000000000", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
    {"00000000000000000000000000000000", "000000000000000000000000", "", "00000000000000000000000000000000",
     "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
     "ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac97"
     "3d58e0915bc94fbc3221a5db94fae95ae7121a47"},
};

std::vector<iovec> cut(std::vector<std::byte>& bytes, std::size_t pieces) {
  std::vector<iovec> cut;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t begin = bytes.size() * i / pieces, end = bytes.size() * (i + 1) / pieces;
    cut.push_back({bytes.data() + begin, end - begin});
  }
  return cut;
}

class EachMaker : public ::testing::TestWithParam<AeadMaker> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(load_libcrypto());
    if (GetParam() == make_ipsec_mb_aead && !has_ipsec_mb()) GTEST_SKIP() << "no libipsec-mb, or no AES instructions";
  }
  std::unique_ptr<Aead> aead(std::string_view key = "000102030405060708090a0b0c0d0e0f") const {
    CipherKey bytes;
    EXPECT_TRUE(from_hex(key, bytes.bytes()));
    return GetParam()(bytes);
  }
};

TEST_P(EachMaker, SealsAsPublished) {
  for (const GcmVector& vector : kGcmVectors) {
    Nonce nonce;
    ASSERT_TRUE(from_hex(vector.nonce, nonce));
    std::vector<std::byte> plain = octets_of(vector.plain);
    const std::vector<std::byte> associated = octets_of(vector.associated);
    const std::unique_ptr<Aead> cipher = aead(vector.key);
    for (const std::size_t pieces : {1U, 2U, 7U}) {
      std::vector<std::byte> sealed(plain.size() + kTagBytes);
      cipher->seal(nonce, associated, cut(plain, pieces), sealed.data());
      EXPECT_EQ(to_hex(sealed), vector.sealed) << pieces;
      std::vector<std::byte> opened(plain.size());
      EXPECT_TRUE(cipher->open(nonce, associated, sealed, opened.data()));
      EXPECT_EQ(opened, plain);
    }
  }
}

TEST_P(EachMaker, NoBitMayBeChanged) {
  std::vector<std::byte> plain(100, std::byte{7});
  std::vector<std::byte> associated(48, std::byte{9});
  const std::unique_ptr<Aead> cipher = aead();
  std::vector<std::byte> sealed(plain.size() + kTagBytes), opened(plain.size());
  cipher->seal({}, associated, cut(plain, 3), sealed.data());
  for (std::vector<std::byte>* part : {&associated, &sealed}) {
    for (std::size_t bit = 0; bit < 8 * part->size(); ++bit) {
      (*part)[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      EXPECT_FALSE(cipher->open({}, associated, sealed, opened.data())) << bit;
      (*part)[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
  }
  EXPECT_TRUE(cipher->open({}, associated, sealed, opened.data()));
  for (std::size_t length = 0; length < sealed.size(); ++length)
    EXPECT_FALSE(cipher->open({}, associated, std::span(sealed).first(length), opened.data())) << length;
  Nonce other{};
  other[11] = std::byte{1};
  EXPECT_FALSE(cipher->open(other, associated, sealed, opened.data()));
}

INSTANTIATE_TEST_SUITE_P(All, EachMaker, ::testing::Values(make_ipsec_mb_aead, make_libcrypto_aead),
                         [](const auto& maker) { return maker.param == make_ipsec_mb_aead ? "IpsecMb" : "Libcrypto"; });

TEST(Aead, BothMakersSealTheSame) {
  ASSERT_TRUE(load_libcrypto());
  if (!has_ipsec_mb()) GTEST_SKIP() << "no libipsec-mb, or no AES instructions";
  std::mt19937_64 random(11);
  for (int turn = 0; turn < 400; ++turn) {
    CipherKey key;
    for (std::byte& byte : key.bytes()) byte = static_cast<std::byte>(random());
    Nonce nonce;
    for (std::byte& byte : nonce) byte = static_cast<std::byte>(random());
    std::vector<std::byte> plain(random() % (turn % 20 == 0 ? 65'000 : 3'000)), associated(48);
    for (std::byte& byte : plain) byte = static_cast<std::byte>(random());
    const std::unique_ptr<Aead> one = make_ipsec_mb_aead(key), two = make_libcrypto_aead(key);
    std::vector<std::byte> by_one(plain.size() + kTagBytes), by_two(by_one.size()), opened(plain.size());
    one->seal(nonce, associated, cut(plain, 1 + random() % 9), by_one.data());
    two->seal(nonce, associated, cut(plain, 1 + random() % 9), by_two.data());
    ASSERT_EQ(by_one, by_two) << plain.size();
    ASSERT_TRUE(one->open(nonce, associated, by_two, opened.data()));
    ASSERT_EQ(opened, plain);
  }
}

}  // namespace
}  // namespace fairlead::seal
