// The best of several greedy plans, each made by placing one life after the other into the smallest hole that
// it fits; then the order of the best is varied. Modules that are gathered and released one by one, or with
// the next one ahead, get a plan without waste; random lives one that is some hundredths too large.
#include "live/device/pool_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace mckpt {
namespace {

// Steps that varying the order may take: some 20 ms.
constexpr i64 kMostSteps = 20'000'000;
constexpr i64 kMostVariations = 200;

using Order = std::vector<std::size_t>;

struct Layout {
  std::vector<i64> offsets;
  i64 slab_bytes = 0;
  std::size_t top = 0;  // the life that ends last in memory
};

// The most that is live at once.
i64 most_live(std::span<const PoolLife> lives) {
  std::vector<std::pair<i64, i64>> changes;  // at one time, what goes goes first: it sorts so
  for (const PoolLife& life : lives) {
    changes.emplace_back(life.begin, life.bytes);
    changes.emplace_back(life.end, -life.bytes);
  }
  std::sort(changes.begin(), changes.end());
  i64 live = 0, most = 0;
  for (const auto& [time, bytes] : changes) {
    live = checked_add(live, bytes, "live buffers");
    most = std::max(most, live);
  }
  return most;
}

bool overlap(const PoolLife& a, const PoolLife& b) { return a.begin < b.end && b.begin < a.end; }

// Where a life goes among those that are placed, which are given by ascending offset.
i64 best_hole(std::span<const PoolLife> lives, const Layout& at, const Order& placed, std::size_t one) {
  i64 free_from = 0, best = -1, best_bytes = std::numeric_limits<i64>::max();
  for (std::size_t other : placed) {
    if (!overlap(lives[one], lives[other])) continue;
    i64 hole = at.offsets[other] - free_from;
    if (hole >= lives[one].bytes && hole < best_bytes) best = free_from, best_bytes = hole;
    free_from = std::max(free_from, at.offsets[other] + lives[other].bytes);
  }
  return best >= 0 ? best : free_from;
}

Layout place(std::span<const PoolLife> lives, const Order& order) {
  Layout at;
  at.offsets.resize(lives.size());
  Order placed;  // by offset
  placed.reserve(lives.size());
  for (std::size_t one : order) {
    i64 offset = at.offsets[one] = best_hole(lives, at, placed, one);
    i64 end = checked_add(offset, lives[one].bytes, "a slab");
    if (end > at.slab_bytes) at.slab_bytes = end, at.top = one;
    auto behind = std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](i64 v, std::size_t other) { return v < at.offsets[other]; });
    placed.insert(behind, one);
  }
  return at;
}

// The orders that are tried: large ones first, those that hold much memory for long, the longest, and as they
// come, each of them forwards and backwards in time where it leaves a choice.
std::vector<Order> greedy_orders(std::span<const PoolLife> lives) {
  std::vector<Order> orders;
  auto by = [&](auto weight) {
    Order order(lives.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int direction = 0; direction < 2; direction++) {
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return weight(lives[a]) > weight(lives[b]); });
      orders.push_back(order);
      std::reverse(order.begin(), order.end());
    }
  };
  by([](const PoolLife& l) { return l.bytes; });
  by([](const PoolLife& l) { return static_cast<double>(l.bytes) * static_cast<double>(l.end - l.begin); });
  by([](const PoolLife& l) { return l.end - l.begin; });
  by([](const PoolLife&) { return 0; });
  return orders;
}

// Varies the best order there is: the life that makes the slab as large as it is goes to an earlier place.
void improve(std::span<const PoolLife> lives, i64 least, Order order, Layout& best) {
  i64 n = std::ssize(lives);
  i64 variations = std::min(kMostVariations, kMostSteps / std::max<i64>(1, n * n));
  std::minstd_rand random(1);
  for (i64 i = 0; i < variations && best.slab_bytes > least; i++) {
    Order varied = order;
    auto top = std::find(varied.begin(), varied.end(), best.top);
    auto to =
        varied.begin() + static_cast<std::ptrdiff_t>(random() % static_cast<u64>(top - varied.begin() + 1));
    std::rotate(to, top, top + 1);
    Layout at = place(lives, varied);
    if (at.slab_bytes > best.slab_bytes) continue;
    best = std::move(at);
    order = std::move(varied);
  }
}

}  // namespace

PoolPlan plan_pool(std::span<const PoolLife> lives, i64 alignment) {
  std::vector<PoolLife> aligned(lives.begin(), lives.end());
  for (PoolLife& life : aligned) life.bytes = round_up(life.bytes, alignment, "a buffer");
  i64 least = most_live(aligned);
  Layout best;
  Order best_order;
  for (Order& order : greedy_orders(aligned)) {
    Layout at = place(aligned, order);
    if (!best_order.empty() && at.slab_bytes >= best.slab_bytes) continue;
    best = std::move(at);
    best_order = std::move(order);
    if (best.slab_bytes == least) break;
  }
  improve(aligned, least, std::move(best_order), best);
  return {std::move(best.offsets), best.slab_bytes, least};
}

}  // namespace mckpt
