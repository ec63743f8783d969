#pragma once
#include <stdarg.h>
#include <stddef.h>
typedef struct __file FILE;
#define EOF (-1)
#define BUFSIZ 1024
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define stdin ((FILE *)1)
#define stdout ((FILE *)2)
#define stderr ((FILE *)3)
int printf(const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int dprintf(int descriptor, const char *format, ...);
int sprintf(char *to, const char *format, ...);
int snprintf(char *to, size_t size, const char *format, ...);
int asprintf(char **to, const char *format, ...);
int vprintf(const char *format, va_list arguments);
int vfprintf(FILE *file, const char *format, va_list arguments);
int vsprintf(char *to, const char *format, va_list arguments);
int vsnprintf(char *to, size_t size, const char *format, va_list arguments);
int scanf(const char *format, ...);
int fscanf(FILE *file, const char *format, ...);
int sscanf(const char *text, const char *format, ...);
int vscanf(const char *format, va_list arguments);
int vsscanf(const char *text, const char *format, va_list arguments);
int getchar(void);
int getc(FILE *file);
int fgetc(FILE *file);
int ungetc(int c, FILE *file);
char *fgets(char *to, int size, FILE *file);
long getline(char **line, size_t *size, FILE *file);
size_t fread(void *to, size_t size, size_t count, FILE *file);
int putchar(int c);
int putc(int c, FILE *file);
int fputc(int c, FILE *file);
int puts(const char *text);
int fputs(const char *text, FILE *file);
size_t fwrite(const void *from, size_t size, size_t count, FILE *file);
int fflush(FILE *file);
int fclose(FILE *file);
FILE *fopen(const char *path, const char *mode);
int feof(FILE *file);
int ferror(FILE *file);
void clearerr(FILE *file);
int fileno(FILE *file);
void perror(const char *text);
int remove(const char *path);
void setbuf(FILE *file, char *buffer);
int setvbuf(FILE *file, char *buffer, int mode, size_t size);
#define getchar_unlocked getchar
#define putchar_unlocked putchar
