#pragma once
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define INFINITY (1.0F / 0.0F)
#define HUGE_VAL (1.0 / 0.0)
#define HUGE_VALF (1.0F / 0.0F)
#define NAN __builtin_nan("0x7ff8000000000000")
typedef double double_t;
typedef float float_t;
double sin(double x);
#define sinf(x) ((float)sin(x))
#define sinl(x) sin(x)
double cos(double x);
#define cosf(x) ((float)cos(x))
#define cosl(x) cos(x)
double tan(double x);
#define tanf(x) ((float)tan(x))
#define tanl(x) tan(x)
double asin(double x);
#define asinf(x) ((float)asin(x))
#define asinl(x) asin(x)
double acos(double x);
#define acosf(x) ((float)acos(x))
#define acosl(x) acos(x)
double atan(double x);
#define atanf(x) ((float)atan(x))
#define atanl(x) atan(x)
double sinh(double x);
#define sinhf(x) ((float)sinh(x))
#define sinhl(x) sinh(x)
double cosh(double x);
#define coshf(x) ((float)cosh(x))
#define coshl(x) cosh(x)
double tanh(double x);
#define tanhf(x) ((float)tanh(x))
#define tanhl(x) tanh(x)
double asinh(double x);
#define asinhf(x) ((float)asinh(x))
#define asinhl(x) asinh(x)
double acosh(double x);
#define acoshf(x) ((float)acosh(x))
#define acoshl(x) acosh(x)
double atanh(double x);
#define atanhf(x) ((float)atanh(x))
#define atanhl(x) atanh(x)
double exp(double x);
#define expf(x) ((float)exp(x))
#define expl(x) exp(x)
double exp2(double x);
#define exp2f(x) ((float)exp2(x))
#define exp2l(x) exp2(x)
double expm1(double x);
#define expm1f(x) ((float)expm1(x))
#define expm1l(x) expm1(x)
double log(double x);
#define logf(x) ((float)log(x))
#define logl(x) log(x)
double log2(double x);
#define log2f(x) ((float)log2(x))
#define log2l(x) log2(x)
double log10(double x);
#define log10f(x) ((float)log10(x))
#define log10l(x) log10(x)
double log1p(double x);
#define log1pf(x) ((float)log1p(x))
#define log1pl(x) log1p(x)
double sqrt(double x);
#define sqrtf(x) ((float)sqrt(x))
#define sqrtl(x) sqrt(x)
double cbrt(double x);
#define cbrtf(x) ((float)cbrt(x))
#define cbrtl(x) cbrt(x)
double fabs(double x);
#define fabsf(x) ((float)fabs(x))
#define fabsl(x) fabs(x)
double floor(double x);
#define floorf(x) ((float)floor(x))
#define floorl(x) floor(x)
double ceil(double x);
#define ceilf(x) ((float)ceil(x))
#define ceill(x) ceil(x)
double round(double x);
#define roundf(x) ((float)round(x))
#define roundl(x) round(x)
double trunc(double x);
#define truncf(x) ((float)trunc(x))
#define truncl(x) trunc(x)
double rint(double x);
#define rintf(x) ((float)rint(x))
#define rintl(x) rint(x)
double nearbyint(double x);
#define nearbyintf(x) ((float)nearbyint(x))
#define nearbyintl(x) nearbyint(x)
double tgamma(double x);
#define tgammaf(x) ((float)tgamma(x))
#define tgammal(x) tgamma(x)
double lgamma(double x);
#define lgammaf(x) ((float)lgamma(x))
#define lgammal(x) lgamma(x)
double erf(double x);
#define erff(x) ((float)erf(x))
#define erfl(x) erf(x)
double erfc(double x);
#define erfcf(x) ((float)erfc(x))
#define erfcl(x) erfc(x)
double pow(double x, double y);
#define powf(x, y) ((float)pow(x, y))
#define powl(x, y) pow(x, y)
double atan2(double x, double y);
#define atan2f(x, y) ((float)atan2(x, y))
#define atan2l(x, y) atan2(x, y)
double fmod(double x, double y);
#define fmodf(x, y) ((float)fmod(x, y))
#define fmodl(x, y) fmod(x, y)
double remainder(double x, double y);
#define remainderf(x, y) ((float)remainder(x, y))
#define remainderl(x, y) remainder(x, y)
double hypot(double x, double y);
#define hypotf(x, y) ((float)hypot(x, y))
#define hypotl(x, y) hypot(x, y)
double fmax(double x, double y);
#define fmaxf(x, y) ((float)fmax(x, y))
#define fmaxl(x, y) fmax(x, y)
double fmin(double x, double y);
#define fminf(x, y) ((float)fmin(x, y))
#define fminl(x, y) fmin(x, y)
double fdim(double x, double y);
#define fdimf(x, y) ((float)fdim(x, y))
#define fdiml(x, y) fdim(x, y)
double copysign(double x, double y);
#define copysignf(x, y) ((float)copysign(x, y))
#define copysignl(x, y) copysign(x, y)
double nextafter(double x, double y);
#define nextafterf(x, y) ((float)nextafter(x, y))
#define nextafterl(x, y) nextafter(x, y)
double fma(double x, double y, double z);
long lround(double x);
long lrint(double x);
#define llround(x) lround(x)
#define llrint(x) lrint(x)
#define lroundf(x) lround(x)
double ldexp(double x, int exponent);
#define scalbn(x, n) ldexp(x, n)
double frexp(double x, int *exponent);
double modf(double x, double *whole);
int __isnan(double x);
int __isinf(double x);
int __isfinite(double x);
int __signbit(double x);
#define isnan(x) __isnan(x)
#define isinf(x) __isinf(x)
#define isfinite(x) __isfinite(x)
#define signbit(x) __signbit(x)
