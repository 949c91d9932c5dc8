#pragma once
// Published test vectors of the two patterns: from cacophony (vectors/cacophony.txt of haskell-cryptography/cacophony)
// and snow (tests/vectors/snow.txt of mcginty/snow). Hexadecimal; an empty text is a value that the vector lacks. From
// the third message on they are transport messages, the initiator's first.

#include <array>
#include <string_view>

#include "seal/noise_handshake.hpp"

namespace fairlead::seal::testing {

struct NoiseVector {
  std::string_view name;
  NoisePattern pattern;
  std::string_view prologue, psk;
  std::string_view initiator_static, initiator_ephemeral;
  std::string_view responder_static, responder_ephemeral, responder_static_public;
  std::string_view handshake_hash;
  struct Message {
    std::string_view payload, ciphertext;
  };
  std::array<Message, 6> messages;
};

inline constexpr std::array kNoiseVectors{
    NoiseVector{
        .name = "cacophony NNpsk0",
        .pattern = NoisePattern::nn_psk0,
        .prologue = "4a6f686e2047616c74",
        .psk = "54686973206973206d7920417573747269616e20706572737065637469766521",
        .initiator_static = "",
        .initiator_ephemeral = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
        .responder_static = "",
        .responder_ephemeral = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
        .responder_static_public = "",
        .handshake_hash = "f4d03dc34495c95729ea6de9e1b59004b59733102488b3e24bc441e0be208eaf",
        .messages = {{
            {"4c756477696720766f6e204d69736573",
             "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c794479b962b8aff8485742ac32f905ba45369e2465fb"
             "59e138a93d67a0d1266b6a54"},
            {"4d757272617920526f746862617264",
             "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843d6062704d5a9c422a8e834423f8c1feada7e8d0d"
             "910a1a2cd030fb584221e3"},
            {"462e20412e20486179656b", "e632c3763d7669067383433197a3baddf146e9e70ad4b4e9e59e0f"},
            {"4361726c204d656e676572", "64c6bee32ea91c8474bb4c21d7a700109ad45af77b29764ba5eb1e"},
            {"4a65616e2d426170746973746520536179",
             "e2fa0bed0603b62d3ccac2ecabbf3fe33f3e86514909b323361626266cb2471cc8"},
            {"457567656e2042f6686d20766f6e2042617765726b",
             "0c01dc9cec1fe4ddd692e8dd32188aa351088dc91183639a53b57aa4692b5ebdef8b8ca111"},
        }},
    },
    NoiseVector{
        .name = "cacophony IK",
        .pattern = NoisePattern::ik,
        .prologue = "4a6f686e2047616c74",
        .psk = "",
        .initiator_static = "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
        .initiator_ephemeral = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
        .responder_static = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
        .responder_ephemeral = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
        .responder_static_public = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
        .handshake_hash = "0b0f68fb0c27e03ce9b97565995ed4838cc0581b762ef72b062f6a546419fad7",
        .messages = {{
            {"4c756477696720766f6e204d69736573",
             "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944718da798efbcd91528520204f904b9bd6c7413dc"
             "cdc214d951e15253e39987f18146e8cd0873654207148333479d4d16c289f0294b29960a72f48e0b7bba2e89083169825e596421"
             "48d492020664ccf7"},
            {"4d757272617920526f746862617264",
             "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088435361e70b2ed446e6c9ec387d1d6b3b840f194e37"
             "3979d241b203c4acafccf5"},
            {"462e20412e20486179656b", "050e9f3c8fac16b68dbce8f8c4bfbf6617c897f9ada4aa29aa19c8"},
            {"4361726c204d656e676572", "344233a6cabb7141d80f3da2fedc311d9646bbb0f505afe403a667"},
            {"4a65616e2d426170746973746520536179",
             "62cdeeb172ad7ade7aa7d9e069da5790f12331bfa00177787a1d0810c67dc3b2b4"},
            {"457567656e2042f6686d20766f6e2042617765726b",
             "029bead1b40992327044d409d9a1f3ad8f36c3c452775d557e18bbeb2e8dfcead32d514024"},
        }},
    },
    NoiseVector{
        .name = "snow IK",
        .pattern = NoisePattern::ik,
        .prologue =
            "5468657265206973206e6f20726967687420616e642077726f6e672e2054686572652773206f6e6c792066756e20616e6420"
            "626f72696e672e",
        .psk = "",
        .initiator_static = "f49f93c5112c0787acc808d61716d7e090e076a58f15a3f78d92773f8dcb473b",
        .initiator_ephemeral = "dae68498c41315cff7e4a34dded8d973199d8f0cf3fcb8b6651c169de77de8be",
        .responder_static = "b790546f98b1e933c48cd01f17e7b281469d46fcacc9a3b584ae65b1d6272e8e",
        .responder_ephemeral = "c0875a5b59c8492bd2135e5432d7d484f938e0a1f5009428c4bcb70b2f69f69f",
        .responder_static_public = "2ea5942829bac414e25aa4cbb1bcc43394816ebb1bd12550d7d0eb4415e42951",
        .handshake_hash = "",
        .messages = {{
            {"95a8f51c435a9530ff1f30868ed7b23ec952eb513c26a0774fed82d2978a8c81",
             "6d21fec9141f3f37cc464e936a48b2d9521b5a44e0f3d960895d3c3fba30282f731f445c25e898e2534ac0536715b24308c108fc"
             "46bd260c887b36c3f68e3a05654fc8295c068ed53fb2022560961224e0b10b0835e1efc82fc587cd50f7178fe3d9eb06e0351c6e"
             "7334162c10bed670bfa2a105f7b2768a140b3fd597782601"},
            {"b866b807a6d8b83182b884dbfedc861843c5082bd6e480cb54e4245a72083041",
             "e64e1fb8701c4f4bc3850b255fea657d4d835338b059c89acc99628fbe52473b41a4e79e3c1e6abc46bf80f078a005e15d8a3e04"
             "f989af3e6cb99b52031165006163ac3e17b928af8c116009d7bf4fb2"},
            {"e3a4937faef391028f759758b428b57652e0069a8dee64dfed01b60846938740",
             "2bebe19102169cdfe79cf41e38930bfd20a5b2fc78ccf33e853ddd939c0983174656eb27b61464a607762848892ca1c0"},
            {"693972f27b0cb98aeac1fb54d782125431e7540e0cb2fa882cf51a8184d724fd",
             "c7c56da33b45d12f4754e17978bd49999c9c8f51d00db460f902aba2e6e245d0c46662f507915de8596f43b1d175f1db"},
        }},
    },
};

}  // namespace fairlead::seal::testing
