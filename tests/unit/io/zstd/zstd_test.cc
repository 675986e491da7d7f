// Frames of the reference implementation (make_frames.py) against the content that they were made of, and damage.
#include "io/zstd/zstd.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace zstd_test {

constexpr std::string_view kEmpty = "28b52ffd2000010000";
constexpr std::string_view kRepeated = "28b52ffda0a086010055000010070701009b8639c002";
constexpr std::string_view kWords =
    "28b52ffd64c3172d15002a48f00714a097240733884312aa4a4e5a225b56005f574d1c7e0076007700f52874ccebba1b4a1b"
    "df865bfc10d2f29932cc227565e7bc4310daa16774b64a9f43e94f2d21a47fbf9d3148deb48e978e09bd5f5385c9924cade2"
    "a237a1e3efd46163c9a3b4bdc3a790967dcaf9d2d7e984333858680739a5d3b552e728e3430b85f477afdd38699bfa95c342"
    "f1fa28b70080820105020506041c084020153afcb29e4da58da18dfbbe0869994fcbcd41eadaf1190e17da81e73bb252fa2c"
    "253f631121fdb9a5e578c91bd67fed08a117ae569b469289d52f7b217484b7f53623798cf60e7e85b4fce3b2f3a4afeec439"
    "8711da21ce7566b5d479e53fb65448ff7768650c699ba9fdd641a13797ab4ed43495afb2a65673d1b3d0d1776a6e2c6d94f6"
    "77f841488b3fa5cc97ba4e87677098d00ea774be56fa1ce57c680942fabed77a9ce44ded10a127af6492ac927b2274c85bcb"
    "46f2b8d6f77c0b69091f963387f4b59d9fe220b4c3ced0e13a52e797f2b158483fdcd17e14691bd77cc751a1e78bd54cd5e4"
    "8ad77801aa7ad91ba1836f6b6f46da18addcc1bf90967e5c7e9ed4d59d39e710423bccb94eac963eafecc7960be9f70eed18"
    "923753efad2308bdb85c7da224d354bbea05a1235ed7df50f2f896b7f823a4453e537216e92b3b72de81423bfc8c8e57a973"
    "28f7a96584f4e57e1b6390b6693d2f1d167abda6e2028196a811401c7e3f03216352b03111200408018210f4fb7700031265"
    "1059324285b5114b40302bc82c976a8ab9c239a3e9c5c423059d5bd631c19832082bdcc2d7bd87e5eb96de392e17d619d7d6"
    "5143457298e64825415c3e0a2a158421304c551ca923250069b6d862c45de18885a9160da09044b11153eecc9a00f34901cc"
    "234f3ce0f18e3bedc43a52e7a9cd00b00e5856208085c500b00cb02c008cb512008815ad021e9a284f";
constexpr std::string_view kNoise =
    "28b52ffd602c0061090000268a3116399a3e21419f401f3c9735122c841ff30f64f7cee239c99cad018e5f6db948152069f0"
    "bbc30e92595ea127e7e92eac6d6ca929e3df1e96514a81f6afa5d95005f329984b3b69d584719c0ab29cc42fd3badf47e9cd"
    "ef54f2d3f254f0ceea49e1bcd531c79fb50ea07588d96e40509e2ff90b56e0acb6038952599e27e8ec33b37677b639f4f233"
    "ad6a659e1bd0c803772e2356c87c6e9e11bdacd94af3df0e76210a31973f2549ab503354b4563654b04f2c47a13d172f851e"
    "f00a5eefc3d52ab88998e67644509a27edf643c89096da6126296beaacacea6b2a2763dc9892ca45f9f02b9e54487aea9d8e"
    "be30dbc9f56411f7268d371f45a9503559ba5e4060be5f3e5cb755314ba33e172f841ced0658e8bbcd21ae7e8cd867344089"
    "15dae22db1787ec1470b";
constexpr std::string_view kSmall =
    "28b52ffd60d00655020052440b071018e603ec27378d12f0ddd85722cf9c6e9480efc6ae0911aa5e95dc735e69ac4d23799a"
    "08289cd3a19e0f080fa83042bdff1bb033db10fcfaffffdf0134739efd37c5406d0a";
constexpr std::string_view kBlocks =
    "28b52ffd0460840d00d6173214c025c301ee02a8b3fa7f90a44c32c924c65e270e2f0029002a008f568b4e327968d39cd36a"
    "b45bc352ca8b1e0ee9c71d6d04b788aadf593c1c472f65c420d80010306c10200c0c0a01a7694c3da515db4de5ab1eb9df16"
    "69aab5c8d0f1af46316f136b271b5a6e8af2e6697b8bef7985bf05a677caace37531a84cc2a86a1d7c797a53871255762b8e"
    "f23a6e5e8352b58bc1973c97791585676b940183006160501804adf89fa92a636b4d317d68135f537ac8aa997b4ade45bf16"
    "0775b54dac9b85de88aacd6d80bfa84050f37e0660a3c2b46d11400842600889406595fd3a80f5c5dabf0fbcf88259b035c0"
    "8d57b70e9ec028685134c1bb607d05f5da05202eb011faa54f280c011046111491c7a24ee8b42de0848da0950b6d1b45d037"
    "d9824db3d5e2804e0b51a752164d6865a12dee2501a7232cc6c30cd4c2777ee88081d62dd4b07033ca85efaa00ca9d08e914"
    "1fd971400070ab817f0a7d7a6f6dd0e737be354cfa9fc61ebe12ae1801379160f8283acce126d813655d2c824431caeee23c"
    "2647c6c80c99a1db1c262bc53a58ed55baba5673555485546e3d2ecebcc8e5eab274af1dce1a821d291c0c00279322210021"
    "0021001e2ab22c6feba4a183546cf9e5783ca4b4c1d9c26c89c3ec2a368faba8b874351694d378c2df1aad934c31f4392dd2"
    "9077b4666c8eaa2d13b36dba1899d66346ed78a5e73553457a1ee5106dfa292d9b18d5a94f2b41da225cd1d538afab312c6d"
    "99e58320c6bad8da5594a1f7515748314a6a47fd52503607c9bc71568b3548a4f68b7c80b9a850923e50b3a2b1031124040f"
    "93c952fee8018454baadd65ac3e261ace2b795b540483ae6fe6fce2a5e5b0fe5ae6246044a9d8632315353b59576988fd94a"
    "4eb6feae7fbad22a58adc215bfd8afe25c98fb7c637898676a41b24659a7a0a950abea56fc1b9d0b4edeca2f45a7fbbd400b"
    "56a1a0599556918dabae9007f3e0c31b5fa378d40772c49c8a6c3037761b3688883057d2f62ae89b1bec97c01c2d7ba75a07"
    "a34428e3432c11826ecc45c7b0380fed0e237a91c516447b4b57a8a53daecc05863ca3442d8e3a0d3d56598b9b4b27b350f6"
    "3bfa7a97d70ac689eafbefbc8580f4dbb1be5001e5aa2dcaf02001dddf201354020052440b071018e603ec27378d12f0ddd8"
    "5722cf9c6e9480efc6ae0911aa5e95dc735e69ac4d23799a08289cd3a19e0f080fa83042bdff1bb033db10fcfaffffdf0134"
    "739efd37c5406d0a0100007a5f71dc";

constexpr i64 kMost = 1 << 20;

std::vector<u8> bytes_of(std::string_view hex) {
  std::vector<u8> out;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    out.push_back(static_cast<u8>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

std::string unpacked(std::string_view hex) {
  std::vector<u8> out = unpack_zstd(bytes_of(hex), kMost);
  return {out.begin(), out.end()};
}

std::string words() {
  std::string out;
  for (int i = 0; i < 400; i++) out += cat("layer ", i % 7, " of ", i * i % 1000, ", ");
  return out;
}

std::string noise() {
  std::string out;
  for (int i = 0; i < 300; i++) out += static_cast<char>((i * i * 31 + i * 7 + (i >> 3)) % 251);
  return out;
}

std::string small() {
  std::string out;
  for (int i = 0; i < 2000; i++) out += static_cast<char>((i * 5 + i / 9) % 17 + i % 3);
  return out;
}

TEST(Zstd, UnpacksWhatTheReferencePacked) {
  EXPECT_EQ(unpacked(kEmpty), "");
  EXPECT_EQ(unpacked(kRepeated), std::string(100'000, '\7'));
  EXPECT_EQ(unpacked(kWords), words());
  EXPECT_EQ(unpacked(kNoise), noise());
  EXPECT_EQ(unpacked(kSmall), small());
  EXPECT_EQ(unpacked(kBlocks), words() + small());
}

TEST(Zstd, JoinsFramesAndSkipsWhatIsNoContent) {
  const std::string skipped = "502a4d1803000000aabbcc";
  EXPECT_EQ(unpacked(cat(skipped, kNoise, skipped, kSmall)), noise() + small());
}

TEST(Zstd, StopsAtTheLimit) {
  EXPECT_EQ(unpack_zstd(bytes_of(kRepeated), 100'000).size(), 100'000u);
  EXPECT_EQ(thrown_by([] { unpack_zstd(bytes_of(kRepeated), 99'999); }).substr(0, 6), "MC1310");
}

TEST(Zstd, FindsEveryChangedContentThatHasASum) {
  for (std::string_view frame : {kWords, kBlocks}) {
    const std::vector<u8> sound = bytes_of(frame);
    const std::vector<u8> content = unpack_zstd(sound, kMost);
    for (std::size_t at = 0; at < sound.size(); at++)
      for (int bit : {1, 16, 128}) {
        std::vector<u8> bad = sound;
        bad[at] = static_cast<u8>(bad[at] ^ bit);
        try {
          EXPECT_EQ(unpack_zstd(bad, kMost), content) << at << " " << bit;
        } catch (const Error& e) {
          EXPECT_TRUE(e.code() == Code::kItemMismatch || e.code() == Code::kBadChecksum) << at;
        }
      }
  }
}

TEST(Zstd, RefusesEveryStreamThatEndsEarly) {
  for (std::string_view frame : {kRepeated, kSmall, kBlocks}) {
    const std::vector<u8> sound = bytes_of(frame);
    for (std::size_t bytes = 0; bytes < sound.size(); bytes++)
      EXPECT_EQ(thrown_by([&] { unpack_zstd(std::span(sound).first(bytes), kMost); }).substr(0, 6), "MC1310")
          << bytes;
  }
}

}  // namespace zstd_test
}  // namespace mckpt::impl
