// The 19-point stencil. Compiled without contraction to fused multiply-adds (see CMakeLists.txt), so that a cell's
// result does not depend on where in a row, and in which loop, the compiler's vectors begin.
#include "himeno/kernel.hpp"

namespace himeno {
namespace {

// The rows of one (i, j): the pressure's nine and the coefficients'. Names say the step in i, then in j.
struct Rows {
  const float *mm, *m0, *mp, *zm, *z0, *zp, *pm, *p0, *pp;
  const float *a0, *a1, *a2, *a3, *b0, *b1, *b2, *c0, *c1, *c2, *bnd, *wrk1;
};

// `next` shares no memory with the rows; that is all that the compiler must know to use vectors.
[[gnu::always_inline]] inline double sweep_row(const Rows& row, float* __restrict next, std::int64_t lo,
                                               std::int64_t hi) {
  const Rows r = row;
  double gosa = 0;
#pragma omp simd reduction(+ : gosa)
  for (std::int64_t k = lo; k < hi; ++k) {
    const float cross_ij = r.pp[k] - r.pm[k] - r.mp[k] + r.mm[k];
    const float cross_jk = r.zp[k + 1] - r.zm[k + 1] - r.zp[k - 1] + r.zm[k - 1];
    const float cross_ik = r.p0[k + 1] - r.m0[k + 1] - r.p0[k - 1] + r.m0[k - 1];
    const float sum = r.a0[k] * r.p0[k] + r.a1[k] * r.zp[k] + r.a2[k] * r.z0[k + 1] +  //
                      r.b0[k] * cross_ij + r.b1[k] * cross_jk + r.b2[k] * cross_ik +   //
                      r.c0[k] * r.m0[k] + r.c1[k] * r.zm[k] + r.c2[k] * r.z0[k - 1] + r.wrk1[k];
    const float residual = (sum * r.a3[k] - r.z0[k]) * r.bnd[k];
    gosa += static_cast<double>(residual * residual);
    next[k] = r.z0[k] + kOmega * residual;
  }
  return gosa;
}

[[gnu::always_inline]] inline double sweep_region(const Coefficients& at, const float* p, float* next,
                                                  const Region& region) {
  double gosa = 0;
  const std::int64_t si = region.stride_i;
  const std::int64_t sj = region.stride_j;
  for (std::int64_t i = region.lo[0]; i < region.hi[0]; ++i) {
    for (std::int64_t j = region.lo[1]; j < region.hi[1]; ++j) {
      const std::int64_t n = i * si + j * sj;
      const float* z = p + n;
      const Rows row{z - si - sj, z - si,      z - si + sj, z - sj,      z,           z + sj,      z + si - sj,
                     z + si,      z + si + sj, at.a[0] + n, at.a[1] + n, at.a[2] + n, at.a[3] + n, at.b[0] + n,
                     at.b[1] + n, at.b[2] + n, at.c[0] + n, at.c[1] + n, at.c[2] + n, at.bnd + n,  at.wrk1 + n};
      gosa += sweep_row(row, next + n, region.lo[2], region.hi[2]);
    }
  }
  return gosa;
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] double sweep_avx2(const Coefficients& at, const float* p, float* next, const Region& region) {
  return sweep_region(at, p, next, region);
}
#endif

double sweep_plain(const Coefficients& at, const float* p, float* next, const Region& region) {
  return sweep_region(at, p, next, region);
}

}  // namespace

double sweep(const Coefficients& coefficients, const float* p, float* next, const Region& region) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx2) return sweep_avx2(coefficients, p, next, region);
#endif
  return sweep_plain(coefficients, p, next, region);
}

}  // namespace himeno
